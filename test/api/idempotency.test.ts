import { expect, test } from 'vitest'
import { setClock } from '../support/clock.ts'
import { startWorld } from '../support/index.ts'
import { shareWorld } from '../support/shared.ts'

const world = shareWorld({ apis: 2, env: { QUOTA_CONCURRENT_SANDBOXES: '3' } })

const keyed = (key: string, more: Record<string, string> = {}) => ({ 'idempotency-key': key, ...more })
const asynchronously = { prefer: 'respond-async' }

test('the same Idempotency-Key and body return the same sandbox, even if the field order differs', async () => {
  const alice = await world.account()
  const metadata = { one: '1', two: '2' }
  const first = await alice.call('createSandbox', {
    headers: keyed('k1'),
    body: { name: 'a', metadata },
  })
  const again = await alice.call('createSandbox', {
    headers: keyed('k1'),
    body: { metadata: { two: '2', one: '1' }, name: 'a' },
    api: 1,
  })
  expect(again.status).toBe(201)
  expect(again.body.id).toBe(first.body.id)
  expect((await alice.call('listSandboxes')).body.data).toHaveLength(1)
})

test('the same Idempotency-Key with a different body returns a conflict', async () => {
  const alice = await world.account()
  await alice.call('createSandbox', { headers: keyed('k2', asynchronously), body: { name: 'a' } })
  await expect(
    alice.call('createSandbox', { headers: keyed('k2'), body: { name: 'b' } }),
  ).rejects.toMatchObject({ status: 409, code: 'idempotency_conflict' })
  await expect(alice.call('createSandbox', { headers: keyed('k2') })).rejects.toMatchObject({
    code: 'idempotency_conflict',
  })
})

test('thirty concurrent creates with the same Idempotency-Key return the same sandbox', async () => {
  const alice = await world.account()
  const answers = await Promise.all(
    Array.from({ length: 30 }, (_, n) => alice.call('createSandbox', { headers: keyed('k3'), api: n % 2 })),
  )
  expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1)
  expect((await alice.call('getAccount')).body.concurrent.active).toBe(1)
})

test('accepts a retried create even if the quota is full or the sandbox has ended', async () => {
  const alice = await world.account()
  await world.db.query('update account set concurrent_limit = 1 where id = ?', [alice.id])
  const { body } = await alice.call('createSandbox', { headers: keyed('k4') })
  expect((await alice.call('createSandbox', { headers: keyed('k4') })).body.id).toBe(body.id)
  await alice.call('destroySandbox', { params: { id: body.id } })
  await expect(alice.call('createSandbox', { headers: keyed('k4') })).rejects.toMatchObject({
    status: 410,
    code: 'sandbox_destroyed',
    problem: { destroy_reason: 'requested', sandbox_id: body.id },
  })
})

test('accepts a retried create even if a new create with the same body would be rejected', async () => {
  const alice = await world.account()
  const body = { ttl_seconds: 600, env: { PATH: '/somewhere' } }
  const create = () => alice.call('createSandbox', { headers: keyed('k7', asynchronously), body })
  const { id } = (await create()).body
  await alice.call('setAllowlist', { body: { commands: ['ls'] } })
  expect((await create()).body.id).toBe(id)
  await alice.call('clearAllowlist')
  await world.db.query('update account set sandbox_seconds_limit = 60 where id = ?', [alice.id])
  await world.eventually(
    async () => (await alice.call('getAccount')).body.limits.sandbox_seconds === 60,
    1_000,
  )
  expect((await create()).body.id).toBe(id)
  await expect(alice.call('createSandbox', { body })).rejects.toMatchObject({ status: 400 })
})

test('after a create is rejected, its Idempotency-Key can be used again', async () => {
  const alice = await world.account()
  await world.db.query('update account set concurrent_limit = 0 where id = ?', [alice.id])
  const create = () => alice.call('createSandbox', { headers: keyed('k5', asynchronously) })
  await expect(create()).rejects.toMatchObject({ code: 'concurrent_sandbox_limit_reached' })
  await world.db.query('update account set concurrent_limit = null where id = ?', [alice.id])
  expect((await create()).status).toBe(202)
})

test('two accounts can use the same Idempotency-Key', async () => {
  const [alice, bob] = [await world.account(), await world.account()]
  const ids = []
  for (const each of [alice, bob]) {
    const { body } = await each.call('createSandbox', { headers: keyed('k6', asynchronously) })
    ids.push(body.id)
  }
  expect(ids[0]).not.toBe(ids[1])
})

test.each(['', ' ', 'a b', 'é', 'x'.repeat(256)])('rejects the invalid Idempotency-Key %j', async (key) => {
  const alice = await world.account()
  const headers = keyed(Buffer.from(key).toString('latin1'))
  await expect(alice.call('createSandbox', { headers })).rejects.toMatchObject({
    code: 'invalid_request',
    problem: { errors: [{ path: 'idempotency-key' }] },
  })
})

test('an Idempotency-Key expires after a day', async () => {
  await using later = await startWorld()
  const alice = await later.account()
  const create = () => alice.call('createSandbox', { headers: keyed('k7', asynchronously) })
  const { body } = await create()
  await alice.call('destroySandbox', { params: { id: body.id } })
  await setClock(later.db, new Date(Date.now() + 23.9 * 3_600_000), { running: true })
  await expect(create()).rejects.toMatchObject({ code: 'sandbox_destroyed' })
  await setClock(later.db, new Date(Date.now() + 24.1 * 3_600_000), { running: true })
  const renewed = await create()
  expect(renewed.body.id).not.toBe(body.id)
  expect((await create()).body.id).toBe(renewed.body.id)
})
