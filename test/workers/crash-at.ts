/** Kills a worker at a crash point. The other workers must repair the state. */

import { Queue } from 'bullmq'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findSandbox } from '../../shared/data/sandboxes.ts'
import { findWarmPods, type WarmPodRow as WarmPod } from '../../shared/data/warm-pods.ts'
import { queueName, queuePrefix } from '../../shared/platform/jobs.ts'
import type { Driver } from '../../workers/drivers/driver.ts'
import type { PodCrashPoint } from '../../workers/faults/crash-points.ts'
import type { Account } from '../support/account.ts'
import { moveClock } from '../support/clock.ts'
import { type DriverName, openWorldDriver } from '../support/drivers.ts'
import { eventually } from '../support/eventually.ts'
import { type Process, startWorld, type World } from '../support/index.ts'
import { keepListed } from '../support/keep-listed.ts'

/** Maximum repair time in milliseconds. */
const mendMs = 60_000

export function describeCrashes(driverName: DriverName, points: readonly PodCrashPoint[]): void {
  let world: World
  let driver: Driver

  beforeAll(async () => {
    world = await startWorld({ driver: driverName, apis: 0, workers: 0 })
    // This API claims existing warm pods. Tests configure which workers keep a pool.
    await world.startApi(pool)
    driver = await openWorldDriver(world)
  })
  afterAll(async () => {
    // The cleanup only checks for orphans if the world knows a worker.
    await world.startWorker()
    await expectAgreement(world, driver)
    await driver.close()
    await world[Symbol.asyncDispose]()
  })

  test.each(points)('rows and pods agree after a worker crash at "%s" and a Redis flush', async (point) => {
    const alice = await world.account()
    // The TTL must not end the sandbox before the crash point.
    const noSweep: Record<string, string> = point.startsWith('expire')
      ? { RECONCILE_INTERVAL_SECONDS: '3600' }
      : {}
    if (point === 'pool: the row is deleted, its pod is not') await leaveWarmPod(world)
    const doomed = await world.startDoomedWorker(point, keepsPool(point) ? pool : noSweep)
    // This worker must notice the death itself, so it was alive when the sandbox was requested.
    const sandboxId = await bringTo(point, world, alice, doomed, driver)
    expect(await doomed.ended).toBe('SIGKILL')
    await world.redis.flushall()
    // The reconciler leaves newer rows to their jobs, which are lost here.
    await moveClock(world.db, 10_000)

    const worker = await world.startWorker()
    if (sandboxId) await world.eventually(async () => isSettled(world, sandboxId), mendMs)
    await world.eventually(async () => (await findWarmPods(world.db)).length === 0, mendMs)
    await expectAgreement(world, driver)
    if (sandboxId) await expectBilledOnce(world, alice, sandboxId, point)
    await worker.stop()
  })
}

const pool = { WARM_POOL_SIZE: '1' }
/** Crash points of a worker with a pool, except the one where it ends other workers' pods. */
const keepsPool = (point: PodCrashPoint) =>
  /^(pool|claim|replace)/.test(point) && point !== 'pool: the row is deleted, its pod is not'

async function awaitWarmPod(world: World): Promise<WarmPod> {
  return await world.eventually(
    async () => (await findWarmPods(world.db)).find((row) => row.ready_at),
    mendMs,
  )
}

async function leaveWarmPod(world: World): Promise<void> {
  const worker = await world.startWorker(pool)
  await awaitWarmPod(world)
  await worker.stop()
}

/** Leads a worker to the crash point. @returns the affected sandbox, if any */
async function bringTo(
  point: PodCrashPoint,
  world: World,
  alice: Account,
  doomed: Process,
  driver: Driver,
): Promise<string | undefined> {
  if (point.startsWith('pool')) return undefined
  if (keepsPool(point)) {
    const warm = await awaitWarmPod(world)
    // The pod dies before it is claimed, and no worker may notice earlier.
    using _ = await keepListed(world)
    doomed.signal('SIGSTOP')
    if (point.startsWith('replace')) await driver.delete({ name: warm.name })
    const { body } = await alice.call('createSandbox')
    expect(body.timings.pod).toBe('claimed')
    doomed.signal('SIGCONT')
    return body.id
  }
  const { body } = await alice.call('createSandbox', { headers: { prefer: 'respond-async' } })
  if (point.startsWith('create')) return body.id
  await world.eventually(async () => (await findSandbox(world.db, body.id))?.ready_at, 30_000)
  if (point.startsWith('delete')) await alice.call('destroySandbox', { params: { id: body.id } })
  const isAboutCap = point.startsWith('expire') || point.startsWith('reconcile')
  if (isAboutCap)
    await world.db.query('update sandbox set expires_at = sandlot_now() where id = ?', [body.id])
  if (point.startsWith('expire')) await promoteExpiry(world, body.id)
  // Without the delayed job, only the reconciler ends the sandbox.
  if (point.startsWith('reconcile')) await world.redis.flushall()
  return body.id
}

/** Runs the delayed job immediately. */
async function promoteExpiry({ redis }: World, sandboxId: string): Promise<void> {
  const queue = new Queue(queueName, { connection: redis, prefix: queuePrefix })
  const isIts = ({ name, data }: { name: string; data: { sandboxId: string } }) =>
    name === 'expire' && data.sandboxId === sandboxId
  const job = await eventually(async () => (await queue.getDelayed()).find(isIts), 5_000)
  await job.promote()
  await queue.close()
}

/** True if the sandbox is ready, or destroyed and cleaned up. */
async function isSettled(world: World, sandboxId: string): Promise<boolean> {
  const sandbox = await findSandbox(world.db, sandboxId)
  return Boolean(sandbox?.destroyed_at ? sandbox.reaped_at : sandbox?.ready_at)
}

/** Every pod has a live row, and every live row has a pod. */
async function expectAgreement(world: World, driver: Driver): Promise<void> {
  await world.eventually(async () => {
    const rows = await world.db.query<{ id: string | null; name: string; uid: string }>(
      `select id, pod_name as name, pod_uid as uid from sandbox where destroyed_at is null
       union all select null, name, uid from warm_pod order by name`,
    )
    const pods = (await driver.list()).filter((pod) => !pod.death)
    const told = pods.map(({ sandboxId = null, name, uid }) => ({ id: sandboxId, name, uid }))
    expect(told.sort((a, b) => (a.name < b.name ? -1 : 1))).toEqual(rows)
    return true
  }, mendMs)
}

/** Usage must equal the time of the only sandbox in its pod. */
async function expectBilledOnce(world: World, alice: Account, sandboxId: string, point: PodCrashPoint) {
  if (/^(create|claim|replace)/.test(point)) await alice.call('destroySandbox', { params: { id: sandboxId } })
  await world.eventually(async () => (await findSandbox(world.db, sandboxId))?.destroyed_at, mendMs)
  const rows = await world.db.query<Lived>(
    `select ready_at, destroyed_at, expires_at, first_ready_at, first_ended_at
     from sandbox where account_id = ?`,
    [alice.id],
  )
  expect(rows).toHaveLength(1)
  const [{ ready_at, destroyed_at, expires_at, first_ready_at, first_ended_at }] = rows as [Lived]
  const msOf = (from: Date | null, to: Date | null) =>
    from ? Math.min(to!.getTime(), expires_at.getTime()) - from.getTime() : 0
  const { body } = await alice.call('getAccount')
  expect(body.usage.milliseconds).toBe(msOf(ready_at, destroyed_at) + msOf(first_ready_at, first_ended_at))
}

type Lived = Record<'ready_at' | 'destroyed_at' | 'first_ready_at' | 'first_ended_at', Date | null> & {
  expires_at: Date
}
