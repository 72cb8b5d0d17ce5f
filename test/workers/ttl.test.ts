/** Three mechanisms end a sandbox at its expires_at. Each test disables two of them. */
import { Queue } from 'bullmq'
import { expect, test } from 'vitest'
import { findSandbox } from '../../shared/data/sandboxes.ts'
import { queueName, queuePrefix } from '../../shared/platform/jobs.ts'
import { describeConcurrently } from '../support/describe-concurrently.ts'
import { describeOnBothDriversAtOnce, openWorldDriver } from '../support/drivers.ts'
import { shareWorld } from '../support/shared.ts'
import type { World } from '../support/world.ts'

/** Longer than a slow pod start, so that the running sandbox can be observed. */
const capSeconds = 12
/** Exceeds the test's duration, so the reconciler runs only in workers with a shorter interval. */
const env = { SANDBOX_MAX_SECONDS: String(capSeconds), RECONCILE_INTERVAL_SECONDS: '3600' }
const sweeping = { RECONCILE_INTERVAL_SECONDS: '1' }

describeOnBothDriversAtOnce('the TTL of a sandbox', (driver) => {
  describeConcurrently('enforced by the workers', () => {
    const world = shareWorld({ driver, env })
    const letTimeBeUp = (sandboxId: string) =>
      world.db.query('update sandbox set expires_at = sandlot_now() where id = ?', [sandboxId])

    test('the delayed `expire` job ends a sandbox when its TTL expires, even without the reconciler', async () => {
      const sandboxId = await create(world)
      const queue = new Queue(queueName, { connection: world.redis as never, prefix: queuePrefix })
      const job = (await queue.getDelayed()).find(({ data }) => data.sandboxId === sandboxId)!
      expect([job.name, job.delay]).toEqual(['expire', capSeconds * 1000])
      // Promotes the job as if the delay were over. BullMQ is responsible for the delay.
      await letTimeBeUp(sandboxId)
      await job.promote()
      await queue.close()
      await expectExpired(world, sandboxId)
    })

    test('the reconciler ends a sandbox when its TTL expires if the delayed `expire` job is lost', async () => {
      await world.startWorker(sweeping)
      const sandboxId = await create(world)
      await world.redis.flushall()
      // Only the reconciler reads this value, so the test does not wait.
      await letTimeBeUp(sandboxId)
      await expectExpired(world, sandboxId)
    })
  })

  describeConcurrently('enforced by the pod', () => {
    const world = shareWorld({ driver, env })

    test("the pod's deadline ends a sandbox while all workers are stopped", async () => {
      const sandboxId = await create(world)
      await Promise.all(world.workers.map((worker) => worker.kill()))
      const looking = await openWorldDriver(world)
      try {
        expect((await looking.list()).map(({ sandboxId, death }) => [sandboxId, death])).toEqual([
          [sandboxId, undefined],
        ])
        await world.eventually(async () => {
          const pod = (await looking.list())[0]
          return !pod || pod.death?.reason === 'expired'
        }, 30_000)
      } finally {
        await looking.close()
      }
      // No worker was running. The first worker to start ends the sandbox and bills at most the TTL.
      expect((await findSandbox(world.db, sandboxId))?.destroyed_at).toBeNull()
      await world.startWorker(sweeping)
      await expectExpired(world, sandboxId)
    })
  })
})

async function create(world: World): Promise<string> {
  const alice = await world.account()
  const { status, body } = await alice.call('createSandbox')
  expect(status).toBe(201)
  return body.id
}

async function expectExpired(world: World, sandboxId: string) {
  await world.eventually(async () => (await findSandbox(world.db, sandboxId))?.reaped_at, 60_000)
  const sandbox = (await findSandbox(world.db, sandboxId))!
  expect(sandbox.destroy_reason).toBe('expired')
  const [row] = await world.db.query<{ ms: string }>(
    `select billed_ms(ready_at, destroyed_at, expires_at, '-infinity', 'infinity') as ms from sandbox where id = ?`,
    [sandboxId],
  )
  expect(Number(row!.ms)).toBeLessThanOrEqual(capSeconds * 1000)
  expect(Number(row!.ms)).toBeGreaterThan(0)
}
