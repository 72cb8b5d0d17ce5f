/** PostgreSQL crashes at the moments of a command at which something was told, or is about to run. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { World } from '../world/index.ts'
import { shareSandbox } from '../world/shared.ts'

const { world, alice, params, sh } = shareSandbox({ ownPostgres: true })
const soonMs = 20_000

async function crash(world: World, awayMs = 0) {
  await world.plugs.postgres!.kill()
  await sleep(awayMs)
  await world.plugs.postgres!.start()
  await world.eventually(() => world.db.query('select 1'), soonMs)
}

/** How commands ended, by their ids, as the list tells. */
const ends = async () => {
  const { body } = await alice.call('listExecs', { params, query: { limit: 100 } })
  return new Map(body.data.map(({ id, status, exit_code }) => [id, { status, exit_code }]))
}

const start = (key: string, command: string, more = {}) =>
  alice.call('execCommand', { params, headers: { 'idempotency-key': key }, body: { command, ...more } })

test('an end that PostgreSQL was away for is written when it is back', async () => {
  const running = start('away', 'sleep 1; exit 7')
  await world.eventually(
    async () => (await world.db.query(`select 1 from exec where idempotency_key = 'away'`)).length,
    soonMs,
  )
  await world.plugs.postgres!.kill()
  const { body } = await running
  expect(body).toMatchObject({ status: 'exited', exit_code: 7 })
  await crash(world)
  const told = { status: 'exited', exit_code: 7 }
  await world.eventually(async () => expect((await ends()).get(body.id)).toEqual(told) ?? true, soonMs)
})

test('ends that a crash took along are written again', async () => {
  const told = await Promise.all(
    Array.from({ length: 10 }, async (_, n) => (await start(`end-${n}`, `exit ${n + 40}`)).body),
  )
  for (const { status } of told) expect(status).toBe('exited')
  await crash(world)
  await world.eventually(async () => {
    const known = await ends()
    for (const { id, exit_code } of told) expect(known.get(id)).toEqual({ status: 'exited', exit_code })
    return true
  }, soonMs)
})

test('an Idempotency-Key outlives a crash: its command runs once', async () => {
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
