/** The warm pool follows demand and yields to cold creates. */

import { Queue } from 'bullmq'
import { expect, test } from 'vitest'
import { readClock } from '../../shared/data/clock.ts'
import { findSandbox } from '../../shared/data/sandboxes.ts'
import { findWarmPods, type WarmPodRow as WarmPod } from '../../shared/data/warm-pods.ts'
import { queueName, queuePrefix } from '../../shared/platform/jobs.ts'
import { inOrderFor, listWorkers } from '../../shared/rpc/worker-registry.ts'
import { demandLimits } from '../../workers/pool/demand.ts'
import { poolLimits } from '../../workers/pool/plan.ts'
import type { Account } from '../support/account.ts'
import { setClock } from '../support/clock.ts'
import { hasCluster } from '../support/cluster.ts'
import { type Process, startWorld, type World } from '../support/index.ts'
import { sumUp } from '../support/metrics.ts'

/** Time for background work, including cold pods on Kubernetes, in milliseconds. */
const soonMs = 60_000
/** Concurrent, because the tests mostly wait. */
const aside = { concurrent: true }

test(
  'a warm pool grows with the largest burst of creates up to its maximum, and shrinks 15 minutes later',
  aside,
  async () => {
    await using world = await startWorld({
      env: {
        SANDBOX_IMAGE: 'free',
        SANDBOX_IMAGES: 'free,capped',
        WARM_POOLS: 'free=1..9,capped=1..2',
        QUOTA_CONCURRENT_SANDBOXES: '10',
      },
    })
    const alice = await world.account()
    const low = { free: 1, capped: 1 }
    await awaitPods(world, low)
    await awaitWanted(world, low)

    // With a stopped clock, the whole burst has the same time.
    const rush = Date.now() + 60_000
    await setClock(world.db, new Date(rush - demandLimits.burstMs))
    await create(alice, 'free')
    await setClock(world.db, new Date(rush))
    await Promise.all(['free', 'free', 'free', 'capped', 'capped'].map((image) => create(alice, image)))
    const grown = { free: Math.ceil(3 * demandLimits.margin), capped: 2 }
    await awaitPods(world, grown)
    await awaitWanted(world, grown)

    // Longer than the interval between the pool's decisions, so that early shrinking would be noticed.
    await setClock(world.db, new Date(rush + demandLimits.memoryMs - 6_000), { running: true })
    await world.startWorker()
    await awaitPods(world, low)
    expect((await readClock(world.db)).getTime()).toBeGreaterThan(rush + demandLimits.memoryMs)
    // Only the deciding worker exports this metric.
    await awaitWanted(world, low)
  },
)

test('refilling the warm pool waits up to 10 s for a create that needs a new pod', aside, async () => {
  const size = 2
  await using world = await startWorld({
    env: {
      SANDBOX_IMAGE: 'pooled',
      SANDBOX_IMAGES: 'pooled,cold',
      WARM_POOL_SIZE: String(size),
      QUOTA_CONCURRENT_SANDBOXES: '10',
      // The reconciler would start pods without the queue.
      RECONCILE_INTERVAL_SECONDS: '3600',
    },
  })
  const alice = await world.account()
  await awaitPods(world, { pooled: size })
  const queue = new Queue(queueName, { connection: world.redis, prefix: queuePrefix })
  // No worker takes the create's job, as if all workers were busy.
  await queue.pause()
  const { body: waiting } = await alice.call('createSandbox', {
    body: { image: 'cold' },
    headers: { prefer: 'respond-async' },
  })
  const claimed = [await create(alice, 'pooled'), await create(alice, 'pooled')]
  expect(claimed.map(({ timings }) => timings.pod)).toEqual(['claimed', 'claimed'])

  const [first, second] = await awaitPods(world, { pooled: size })
  const rowOfWaiting = async () => (await findSandbox(world.db, waiting.id))!
  const { ready_at, created_at } = await rowOfWaiting()
  expect(ready_at).toBeNull()
  expect(first!.born_at.getTime() - created_at.getTime()).toBeGreaterThanOrEqual(poolLimits.yieldMs)
  expect(second!.born_at.getTime()).toBeGreaterThanOrEqual(first!.ready_at!.getTime())

  await queue.resume()
  await queue.close()
  await world.eventually(async () => (await rowOfWaiting()).ready_at, soonMs)
})

const onCluster = { ...aside, skip: !hasCluster }

test(
  'the first command in a claimed warm pod runs in a shell pre-opened by the worker responsible for the pod',
  onCluster,
  async () => {
    const size = 6
    await using world = await startWorld({
      driver: 'kubernetes',
      workers: 3,
      env: { WARM_POOL_SIZE: String(size), QUOTA_CONCURRENT_SANDBOXES: '10' },
    })
    const alice = await world.account()
    const { image } = world.settings.sandbox
    const held = async (names: string[], worker: Process) => {
      const entries = await listWorkers(world)
      return names.filter((name) => inOrderFor(name, entries)[0]!.url === worker.callsUrl).length
    }
    // After a minute, a worker closes slots of sandboxes that it no longer owns.
    await world.eventually(async () => {
      const names = (await awaitPods(world, { [image]: size })).map(({ name }) => name)
      for (const worker of world.workers) {
        const waiting = await sumUp([worker.internalUrl], 'sandlot_slots_waiting', 'role')
        expect(waiting.worker ?? 0).toBe(await held(names, worker))
      }
      return true
    }, 2 * soonMs)
    const ids = await Promise.all(
      Array.from({ length: size }, async () => {
        const { id, timings } = await create(alice, image)
        expect(timings.pod).toBe('claimed')
        const { body } = await alice.call('execCommand', { params: { id }, body: { command: ['true'] } })
        expect(body).toMatchObject({ status: 'exited', exit_code: 0 })
        return id
      }),
    )
    const found = (workers: Process[]) => sumUp(urlsOf(workers), 'sandlot_slots_total', 'outcome')
    expect(await found(world.workers)).toEqual({ warm: size })
    for (const worker of world.workers) {
      expect((await found([worker])).warm ?? 0).toBe(await held(ids, worker))
    }
  },
)

const create = async (account: Account, image: string) =>
  (await account.call('createSandbox', { body: { image } })).body

/** Waits until each image has this number of claimable pods. @returns the pods, oldest first */
const awaitPods = (world: World, sizes: Record<string, number>): Promise<WarmPod[]> =>
  world.eventually(async () => {
    const rows = await findWarmPods(world.db)
    const isSo = (image: string) => rows.filter((row) => row.image === image).length === sizes[image]
    const isRight = Object.keys(sizes).every(isSo) && rows.every((row) => row.ready_at && row.image in sizes)
    return isRight ? rows : undefined
  }, soonMs)

/** Waits until the workers' metrics add up to these pool sizes. */
const awaitWanted = (world: World, sizes: Record<string, number>): Promise<true> =>
  world.eventually(async () => {
    expect(await sumUp(urlsOf(world.workers), 'sandlot_pool_pods', 'image', 'state="wanted"')).toEqual(sizes)
    return true as const
  }, soonMs)

const urlsOf = (processes: Process[]) => processes.map(({ internalUrl }) => internalUrl)
