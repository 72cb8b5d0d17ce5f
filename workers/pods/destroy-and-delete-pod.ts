import type { DestroyReason } from '../../shared/contract/sandboxes.ts'
import { markDestroyed, markIdle, markOverdue, markReaped } from '../../shared/data/sandbox-writes.ts'
import { findSandbox, podOf, type SandboxRow } from '../../shared/data/sandboxes.ts'
import { notify } from '../../shared/platform/notify.ts'
import type { PodCrashPoint } from '../faults/crash-points.ts'
import type { PodsContext } from './context.ts'
import { removePod } from './remove-pod.ts'

/**
 * Ends a sandbox for a reason other than a client's request, then deletes its pod. Does not require Redis.
 * @param point the crash point between the two steps
 */
export async function destroyAndDeletePod(
  worker: PodsContext,
  sandboxId: string,
  reason: DestroyReason,
  detail: string | null,
  point: PodCrashPoint,
): Promise<void> {
  await finishEnd(worker, sandboxId, await markDestroyed(worker.db, sandboxId, reason, detail), point)
}

/**
 * Ends a sandbox as {@link destroyAndDeletePod} does, but only if it has expired. Returns whether it is
 * destroyed.
 */
export async function endOverdueAndDeletePod(
  worker: PodsContext,
  sandboxId: string,
  point: PodCrashPoint,
): Promise<boolean> {
  return await finishEnd(worker, sandboxId, await markOverdue(worker.db, sandboxId), point)
}

/** Ends a sandbox as {@link destroyAndDeletePod} does, but only if it is idle. */
export async function endIdleAndDeletePod(
  worker: PodsContext,
  sandboxId: string,
  point: PodCrashPoint,
): Promise<void> {
  await finishEnd(worker, sandboxId, await markIdle(worker.db, sandboxId), point)
}

/** @param ended the sandbox's row; set only if this process has just destroyed the sandbox */
async function finishEnd(
  worker: PodsContext,
  sandboxId: string,
  ended: SandboxRow | undefined,
  point: PodCrashPoint,
): Promise<boolean> {
  if (ended) {
    const { account_id, destroy_reason: reason, destroy_detail: detail } = ended
    worker.reach(point)
    worker.log.info({ sandbox_id: sandboxId, account_id, reason, detail }, 'a sandbox ended')
    await notify(worker.redis, 'sandbox', sandboxId).catch(() => {})
  }
  return await reapPod(worker, sandboxId)
}

/** Deletes the pod of a destroyed sandbox. Returns false if the sandbox is not destroyed. */
export async function reapPod(worker: PodsContext, sandboxId: string): Promise<boolean> {
  const { db, reach } = worker
  const sandbox = await findSandbox(db, sandboxId)
  if (!sandbox?.destroyed_at) return false
  if (sandbox.reaped_at) return true
  reach('delete: before the pod is deleted')
  // No uid is passed, because any pod with this sandbox's name must be deleted.
  await removePod(worker, { name: podOf(sandbox).name })
  reach('delete: the pod is deleted, the row is not marked reaped')
  await markReaped(db, sandboxId)
  return true
}
