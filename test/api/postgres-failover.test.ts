/** An address moves from one PostgreSQL server to its standby, and the old primary restarts as a standby. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Account } from '../support/account.ts'
import { readinessOf } from '../support/http.ts'
import { type Process, startWorld, type World } from '../support/index.ts'
import { openRelay, type Relay } from '../support/relay.ts'
import { openPostgresPair, type PostgresPair } from '../support/standby.ts'

const recoverMs = 5_000

let world: World
let pair: PostgresPair
let address: Relay
let alice: Account

beforeAll(async () => {
  world = await startWorld({ apis: 0, workers: 0, separatePostgres: true })
  pair = await openPostgresPair(world)
  const folder = join(world.folder, 'a')
  mkdirSync(folder)
  address = await openRelay({ path: pair.first.path }, { path: join(folder, '.s.PGSQL.5432') })
  const url = world.settings.databaseUrl.replace(join(world.folder, 'p'), folder)
  await Promise.all([world.startApi({ DATABASE_URL: url }), world.startWorker({ DATABASE_URL: url })])
  alice = await world.account()
})
afterAll(async () => {
  await world[Symbol.asyncDispose]()
  await address.close()
  await pair.end()
})

test('database connections that stop responding are replaced', async () => {
  address.forget()
  // Each broken connection delays one response by ten seconds. No response is wrong in the meantime.
  const answer = () => alice.call('listApiKeys').catch((error) => error)
  expect([200, 503]).toContain((await answer()).status)
  await world.eventually(async () => (await answer()).status === 200, 30_000)
  await world.eventually(() => world.account(), 30_000)
  address.repair()
})

const postgresOf = async (process: Process) => (await readinessOf(process)).parts.postgres

const standby = expect.stringContaining('standby')

test('processes stop using a demoted primary, and no reported result is lost', async () => {
  const params = { id: (await alice.call('createSandbox')).body.id }
  const run = (command: string) => alice.call('execCommand', { params, body: { command } })
  const ran = (await run('exit 7')).body
  const toldOf = async () => (await alice.call('listExecs', { params })).body.data.map(({ id }) => id)

  for (const server of [pair.second, pair.first]) {
    // The address still points to the old primary, which now only serves reads.
    await pair.switchTo(server)
    const calls = [() => alice.call('listExecs', { params }), () => run('true'), () => world.account()]
    for (const call of calls) await expect(call()).rejects.toMatchObject({ status: 503, code: 'unavailable' })
    for (const process of [...world.apis, ...world.workers])
      expect(await postgresOf(process)).toEqual(standby)

    address.lead({ path: server.path })
    expect(await world.eventually(toldOf, recoverMs)).toContain(ran.id)
    await world.eventually(() => run('echo on'), recoverMs)
    for (const process of [...world.apis, ...world.workers])
      await world.eventually(async () => (await postgresOf(process)) === 'ok', recoverMs)
  }
})
