/** PostgreSQL crashes just before a command starts, or around the report of an exit status. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { podName } from '../../shared/data/ids.ts'
import { isSoak } from '../support/eventually.ts'
import type { World } from '../support/index.ts'
import { shareSandbox } from '../support/shared.ts'

const { world, alice, params, sh } = shareSandbox({ separatePostgres: true })
const soonMs = 20_000

async function crash(world: World) {
  await world.plugs.postgres!.kill()
  await world.plugs.postgres!.start()
  await world.eventually(() => world.db.query('select 1'), soonMs)
}

/** Ends when a file exists, because the API cannot control commands without PostgreSQL. */
const untilSaid = (word: string, code: number) => `until test -e ${word}; do sleep 0.1; done; exit ${code}`
const say = (word: string) =>
  writeFileSync(join(world.folder, 'sandboxes', podName(params.id), 'workspace', word), '')

/** Exit statuses by command id, from the list endpoint. */
const ends = async () => {
  const { body } = await alice.call('listExecs', { params, query: { limit: 100 } })
  return new Map(body.data.map(({ id, status, exit_code }) => [id, { status, exit_code }]))
}

const start = (key: string, command: string, more = {}) =>
  alice.call('execCommand', { params, headers: { 'idempotency-key': key }, body: { command, ...more } })

const hasBegun = (key: string) =>
  world.eventually(
    async () => (await world.db.query('select 1 from exec where idempotency_key = ?', [key])).length,
    soonMs,
  )

// PostgreSQL must be available again within 10 s.
test.runIf(isSoak)('an exit status is reported once PostgreSQL is available again', async () => {
  const running = start('away', untilSaid('back', 7))
  await hasBegun('away')
  await world.plugs.postgres!.kill()
  const waits = () =>
    world.workers[0]!.lines.some(({ msg }) => msg.startsWith('an exit status cannot be written'))
  say('back')
  await world.eventually(waits, soonMs)
  await crash(world)
  const { body } = await running
  expect(body).toMatchObject({ status: 'exited', exit_code: 7 })
  expect((await ends()).get(body.id)).toEqual({ status: 'exited', exit_code: 7 })
})

test('an exit status that cannot be stored in time is not reported, but is stored later', async () => {
  const command = untilSaid('away', 8)
  const running = start('long-away', command)
  await hasBegun('long-away')
  await world.plugs.postgres!.kill()
  say('away')
  await expect(running).rejects.toMatchObject({ status: 503, code: 'unavailable' })
  await crash(world)
  await world.eventually(
    async () => [...(await ends()).values()].some(({ exit_code }) => exit_code === 8),
    soonMs,
  )
  expect((await start('long-away', command)).body).toMatchObject({ status: 'exited', exit_code: 8 })
})

const runTen = (run: (command: string, n: number) => ReturnType<typeof start>) =>
  Promise.all(Array.from({ length: 10 }, async (_, n) => (await run(`sleep 2; exit ${n + 40}`, n)).body))

async function expectEnds(told: Awaited<ReturnType<typeof runTen>>) {
  const known = await ends()
  for (const { id, exit_code } of told) expect(known.get(id)).toEqual({ status: 'exited', exit_code })
}

test('exit statuses lost in a PostgreSQL crash are written again', async () => {
  const told = await runTen((command) => alice.call('execCommand', { params, body: { command } }))
  await crash(world)
  await world.eventually(async () => {
    await expectEnds(told)
    return true
  }, soonMs)
})

test('a command with an Idempotency-Key runs only once, even if PostgreSQL crashes', async () => {
  for (const key of ['one', 'two', 'three']) {
    const background = { background: true }
    const { body } = await start(key, `echo x >> ran-${key}; sleep 600`, background)
    await crash(world)
    const again = await world.eventually(
      async () => (await start(key, `echo x >> ran-${key}; sleep 600`, background)).body,
      soonMs,
    )
    expect(again.id).toBe(body.id)
    expect((await sh(`cat ran-${key}`)).stdout).toBe('x\n')
  }
})

test('exit statuses reported for an Idempotency-Key survive crashes of PostgreSQL and the worker', async () => {
  const told = await runTen((command, n) => start(`end-${n}`, command))
  await Promise.all([world.workers[0]!.kill(), world.plugs.postgres!.kill()])
  await crash(world)
  await expectEnds(told)
  await world.startWorker()
})
