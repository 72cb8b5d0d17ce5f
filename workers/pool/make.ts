import { readClock } from '../../shared/data/clock.ts'
import { markWarm, removeWarmPod, type WarmPodRow as WarmPod } from '../../shared/data/warm-pods.ts'
import { PodRefused } from '../drivers/driver.ts'
import type { PodsContext } from '../pods/context.ts'
import { awaitFirstSlot } from '../pods/create-pod.ts'
import { removePod } from '../pods/remove-pod.ts'

/**
 * Creates a warm pod, or continues where another worker stopped. Resolves when the pod can be claimed.
 * @throws {PodRefused} if the cluster refused the pod; in that case, the row has already been deleted
 */
export async function makeWarmPod(worker: PodsContext, row: WarmPod, signal: AbortSignal): Promise<void> {
  const { db, driver, slotOwner, metrics, reach, settings, slots } = worker
  const { name, image } = row
  const leftMs =
    row.born_at.getTime() + settings.sandbox.startSeconds * 1000 - (await readClock(db)).getTime()
  const deadlineSeconds = (row.ends_at.getTime() - row.born_at.getTime()) / 1000
  const late = AbortSignal.timeout(Math.max(1, leftMs))
  reach('pool: the row exists, its pod does not')
  try {
    const pod = await driver.create({ name, image, deadlineSeconds })
    reach('pool: the pod exists, it is not ready')
    const slot = await awaitFirstSlot(driver, pod, AbortSignal.any([signal, late]))
    reach('pool: the pod is ready, its row is not marked ready')
    const marking = markWarm(db, name, pod.uid)
    const isWarm = await (slot?.orClose(marking) ?? marking)
    // A later claim sends its commands to the slot owner, so only the slot owner keeps the slot.
    if (slot && isWarm && slotOwner.owns(name)) slots.adopt(name, pod, slot)
    else slot?.close()
    // Another worker may have made the pod ready, and a sandbox may have claimed it. `removePod` checks that.
    if (!isWarm) return await removePod(worker, pod)
    metrics.poolRefill.observe({ image }, ((await readClock(db)).getTime() - row.born_at.getTime()) / 1000)
  } catch (error) {
    // If the row is gone, another worker has deleted the pod, and the cluster has not refused it.
    if (error instanceof PodRefused && !(await discardWarmPod(worker, row))) return
    throw error
  }
}

/**
 * Deletes a warm pod's row and then the pod, so that no create request can claim a pod that is being deleted.
 * @returns false if the row no longer exists
 */
export async function discardWarmPod(
  worker: Pick<PodsContext, 'db' | 'driver' | 'log' | 'reach'>,
  { name }: Pick<WarmPod, 'name'>,
): Promise<boolean> {
  if (!(await removeWarmPod(worker.db, name))) return false
  worker.reach('pool: the row is deleted, its pod is not')
  await removePod(worker, { name })
  return true
}
