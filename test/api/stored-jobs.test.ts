/** Size in Redis of a delayed job, as documented in docs/hosting.md. */
import { Queue } from 'bullmq'
import { expect, test } from 'vitest'
import { queueName, queuePrefix } from '../../shared/platform/jobs.ts'
import { startWorld } from '../support/index.ts'

test('the expire job of a sandbox that ended early uses about 700 bytes of Redis memory', async () => {
  await using world = await startWorld()
  const alice = await world.account()
  const { body } = await alice.call('createSandbox', { body: { ttl_seconds: 600 } })
  await alice.call('destroySandbox', { params: { id: body.id } })
  const queue = new Queue(queueName, { connection: world.redis, prefix: queuePrefix })
  await world.eventually(async () => {
    const counts = await queue.getJobCounts('wait', 'active', 'delayed')
    return counts.wait === 0 && counts.active === 0 && counts.delayed === 1
  }, 5_000)
  const [job] = await queue.getDelayed()
  expect(job).toMatchObject({ name: 'expire', data: { sandboxId: body.id } })
  expect(job!.opts.delay).toBeGreaterThan(590_000)
  const bytes = await world.redis.memory('USAGE', queue.toKey(job!.id!))
  expect(bytes).toBeGreaterThan(300)
  expect(bytes).toBeLessThan(900)
  await queue.close()
})
