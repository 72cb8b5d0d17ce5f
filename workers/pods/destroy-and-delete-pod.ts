import type { DestroyReason } from '../../shared/contract/sandboxes.ts'
import { markDestroyed, markReaped } from '../../shared/data/sandbox-writes.ts'
import { findSandbox, podOf } from '../../shared/data/sandboxes.ts'
import { notify } from '../../shared/platform/notify.ts'
import type { PodCrashPoint } from '../faults/crash-points.ts'
import type { PodsContext } from './context.ts'
import { removePod } from './remove-pod.ts'

/** For any reason other than a client's request. Does not require Redis. */
export async function destroyAndDeletePod(
  worker: PodsContext,
  sandboxId: string,
  reason: DestroyReason,
  detail: string | null,
  point: PodCrashPoint,
): Promise<void> {
  const ended = await markDestroyed(worker.db, sandboxId, reason, detail)
  if (ended) {
    worker.reach(point)
    worker.log.info(
      { sandbox_id: sandboxId, account_id: ended.account_id, reason: ended.destroy_reason, detail },
      'a sandbox ended',
    )
    await notify(worker.redis, 'sandbox', sandboxId).catch(() => {})
  }
  await reapPod(worker, sandboxId)
}

export async function reapPod(worker: PodsContext, sandboxId: string): Promise<void> {
  const { db, reach } = worker
  const sandbox = await findSandbox(db, sandboxId)
  if (!sandbox?.destroyed_at || sandbox.reaped_at) return
  reach('delete: before the pod is deleted')
  // No uid is passed, because any pod with this sandbox's name must be deleted.
  await removePod(worker, { name: podOf(sandbox).name })
  reach('delete: the pod is deleted, the row is not marked reaped')
  await markReaped(db, sandboxId)
}
