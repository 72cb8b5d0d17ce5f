import { expect, test } from 'vitest'
import { shareSandbox } from '../support/shared.ts'

const { world, alice, params } = shareSandbox()

test('a running command is not reported as lost while the worker registry is empty', async () => {
  const body = { command: ['sleep', '663'], background: true }
  const exec_id = (await alice.call('execCommand', { params, body })).body.id
  // Longer than the API caches the worker registry.
  for (const until = performance.now() + 700; performance.now() < until; ) await world.redis.flushall()
  const [{ body: list }, { body: one }] = await Promise.all([
    alice.call('listExecs', { params }),
    alice.call('getExec', { params: { ...params, exec_id } }),
  ])
  expect(list.data).toMatchObject([{ id: exec_id, status: 'running' }])
  expect(one).toMatchObject({ id: exec_id, status: 'running' })
})
