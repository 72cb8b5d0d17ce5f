import { isPodOwned } from '../../shared/data/sandbox-pods.ts'
import type { PodName } from '../drivers/driver.ts'
import type { PodsContext } from './context.ts'

/**
 * The one place that deletes pods. The caller may have been frozen since it knew why, so this asks right before whose
 * the pod is. A pod without an owner never gets one again: a name is used once, and passes from the pool to a sandbox
 * in one transaction.
 * @param pod without a uid, any pod of this name is deleted
 */
export async function removePod(
  { db, driver, log }: Pick<PodsContext, 'db' | 'driver' | 'log'>,
  pod: PodName,
): Promise<void> {
  if (await isPodOwned(db, pod)) return log.info({ pod: pod.name }, 'a pod has an owner and is left alone')
  await driver.delete(pod)
}
