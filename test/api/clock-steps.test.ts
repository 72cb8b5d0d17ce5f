/** Clock steps of PostgreSQL, Redis and a process while the system runs. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import type { Account } from '../support/account.ts'
import { moveClock, moveClockOfRedis } from '../support/clock.ts'
import { shareWorld } from '../support/shared.ts'

const hourMs = 3_600_000
const recoverMs = 5_000

const world = shareWorld({ env: { QUOTA_CONCURRENT_SANDBOXES: '1' } })

const create = async (account: Account) => ({ id: (await account.call('createSandbox')).body.id })
const say = async (account: Account, params: { id: string }) =>
  (await account.call('execCommand', { params, body: { command: 'echo on' } })).body.stdout
const used = async (account: Account) => (await account.call('getAccount')).body.usage.milliseconds

test('when the PostgreSQL clock steps back, no billed time is negative and quotas still apply', async () => {
  const alice = await world.account()
  const params = await create(alice)
  await moveClock(world.db, -hourMs)
  expect(await say(alice, params)).toBe('on\n')
  await expect(alice.call('createSandbox')).rejects.toMatchObject({
    code: 'concurrent_sandbox_limit_reached',
  })
  await alice.call('destroySandbox', { params })
  const { ready_at, destroyed_at } = (await alice.call('getSandbox', { params })).body
  expect(destroyed_at).toBe(ready_at)
  const next = await create(alice)
  expect(await used(alice)).toBeLessThan(hourMs)
  await alice.call('destroySandbox', { params: next })
  expect(await used(alice)).toBeGreaterThanOrEqual(0)
  await moveClock(world.db, hourMs)
})

test('when the PostgreSQL clock steps forward, expired sandboxes end and free their quota', async () => {
  const alice = await world.account()
  const params = await create(alice)
  await moveClock(world.db, hourMs)
  const next = await create(alice)
  const { destroy_reason, ready_at, expires_at } = (await alice.call('getSandbox', { params })).body
  expect(destroy_reason).toBe('expired')
  const billed = Date.parse(expires_at) - Date.parse(ready_at!)
  await alice.call('destroySandbox', { params: next })
  const { body } = await alice.call('getSandbox', { params: next })
  expect(await used(alice)).toBe(billed + Date.parse(body.destroyed_at!) - Date.parse(body.ready_at!))
})

test.each([
  ['back', -hourMs],
  ['forward', 2 * hourMs],
])('jobs, rate limits and workers keep working when the Redis clock is set %s', async (_, byMs) => {
  const alice = await world.account()
  await moveClockOfRedis(world.redis, byMs)
  const params = await world.eventually(() => create(alice), recoverMs)
  expect(await world.eventually(() => say(alice, params), recoverMs)).toBe('on\n')
  await alice.call('destroySandbox', { params })
  await world.eventually(() => world.account(), recoverMs)
})

test('an API process with a wrong clock finds no worker, but bills the correct time', async () => {
  const folder = join(world.folder, 'moved')
  mkdirSync(folder)
  const clock = join(folder, 'clock')
  const preload = pathToFileURL(join(import.meta.dirname, '..', 'chaos', 'preload.mjs')).href
  writeFileSync(clock, '0')
  const env = { NODE_OPTIONS: `--import=${preload}`, CHAOS_WIRES: folder, CHAOS_CLOCK: clock }
  const api = world.apis.indexOf(await world.startApi(env))
  const alice = await world.account()
  // The API may have cached the workers before the clock step of the previous test.
  const params = await world.eventually(() => create(alice), recoverMs)
  writeFileSync(clock, String(10 * 60_000))
  const run = () =>
    alice.call('execCommand', { params, body: { command: 'true' }, api }).then(
      () => undefined,
      (error) => error,
    )
  expect(await world.eventually(run, recoverMs)).toMatchObject({ status: 503, code: 'unavailable' })
  await alice.call('destroySandbox', { params, api })
  const { ready_at, destroyed_at } = (await alice.call('getSandbox', { params, api })).body
  expect(await used(alice)).toBe(Date.parse(destroyed_at!) - Date.parse(ready_at!))
  writeFileSync(clock, '0')
  await world.eventually(() => alice.call('createSandbox', { api }), recoverMs)
})
