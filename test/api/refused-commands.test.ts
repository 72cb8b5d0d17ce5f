/** Commands that were rejected with 503 leave nothing behind, and their keys can be used again. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Account, expectRefusal } from '../support/account.ts'
import { startWorld, type World } from '../support/index.ts'
import { openRelay, type Relay } from '../support/relay.ts'

let world: World
let alice: Account
let params: { id: string }
/** The connection between the worker and PostgreSQL. */
let wire: Relay
/** Called when the insert of a command's row is sent to PostgreSQL. */
let onInsert = () => {}

beforeAll(async () => {
  world = await startWorld({ workers: 0, separatePostgres: true })
  const { databaseUrl } = world.settings
  const directory = /host=([^&]+)/.exec(databaseUrl)![1]!
  const near = join(world.folder, 'wire')
  mkdirSync(near)
  const socketIn = (folder: string) => ({ path: join(folder, '.s.PGSQL.5432') })
  wire = await openRelay(socketIn(directory), socketIn(near), {
    opened: (client) =>
      client.on(
        'data',
        (bytes) => /command (with a key )?starts/.test(bytes.toString('latin1')) && onInsert(),
      ),
  })
  await world.startWorker({ DATABASE_URL: databaseUrl.replace(directory, near) })
  alice = await world.account()
  params = { id: (await alice.call('createSandbox')).body.id }
})
afterAll(async () => {
  wire.repair()
  await world[Symbol.asyncDispose]()
  await wire.close()
})

const run = (key?: string) =>
  alice.call('execCommand', {
    params,
    body: { command: `echo ran >>${key ?? 'none'}; cat ${key ?? 'none'}` },
    ...(key ? { headers: { 'idempotency-key': key } } : {}),
  })

const countRows = async () => (await world.db.query('select id from exec')).length

/** Repeats the request. The command must now run exactly once. */
async function assertRunning(key: string) {
  const { body } = await world.eventually(() => run(key), 10_000)
  expect(body).toMatchObject({ status: 'exited', exit_code: 0, stdout: 'ran\n' })
  expect((await run(key)).body.id).toBe(body.id)
}

test.each([
  ['with an Idempotency-Key', 'lost'],
  ['without an Idempotency-Key', undefined],
])('a command %s that gets 503 in a PostgreSQL outage leaves no row and can be retried', async (_, key) => {
  const before = await countRows()
  // Sequential, because losing responses affects every open request.
  onInsert = () => wire.loseAnswers()
  const call = expectRefusal(run(key))
  await world.eventually(async () => (await countRows()) === before + 1, 10_000)
  wire.cut()
  onInsert = () => {}
  expect(await call).toMatchObject({ status: 503 })
  wire.repair()
  await world.eventually(async () => (await countRows()) === before, 10_000)
  if (key) await assertRunning(key)
})

test('a command that was rejected because of a table lock can be retried', async () => {
  const before = await countRows()
  const [locked, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const lock = world.db.transaction(async (db) => {
    await db.query('set local idle_in_transaction_session_timeout = 0')
    await db.query('lock table exec in exclusive mode')
    locked.resolve()
    await release.promise
  })
  await locked.promise
  const refusals = await Promise.all([expectRefusal(run('locked')), expectRefusal(run())])
  release.resolve()
  await lock
  for (const refusal of refusals) expect(refusal).toMatchObject({ status: 503 })
  // This insert runs after all waiting ones.
  await assertRunning('locked')
  expect(await countRows()).toBe(before + 1)
})

test('a rejected command can be retried, even if its insert reaches PostgreSQL late', async () => {
  const before = await countRows()
  onInsert = () => {
    onInsert = () => {}
    world.plugs.postgres!.freeze()
  }
  expect(await expectRefusal(run('late'))).toMatchObject({ status: 503 })
  await world.plugs.postgres!.start()
  await assertRunning('late')
  await world.eventually(async () => (await countRows()) === before + 1, 10_000)
})
