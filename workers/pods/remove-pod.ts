import { isPodOwned } from '../../shared/data/sandbox-pods.ts'
import type { PodName } from '../drivers/driver.ts'
import type { PodsContext } from './context.ts'

/**
 * Deletes a pod unless the warm pool or an active sandbox owns it. Checks this immediately before the
 * deletion, because this process may have been frozen since the caller's decision.
 *
 * A pod without an owner never gets one again: each pod name is used only once, and a claim moves the pod
 * from the pool to a sandbox in one transaction.
 * @param pod if it has no `uid`, any pod with its name is deleted
 */
export async function removePod(
  { db, driver, log }: Pick<PodsContext, 'db' | 'driver' | 'log'>,
  pod: PodName,
): Promise<void> {
  if (await isPodOwned(db, pod)) return log.info({ pod: pod.name }, 'the pod has an owner and is not deleted')
  await driver.delete(pod)
}
