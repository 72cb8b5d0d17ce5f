/** Ends sandboxes for reasons other than a client's request, and deletes the pods of ended sandboxes. */
import { readClock } from '../../shared/data/clock.ts'
import { markOverdue, markReaped } from '../../shared/data/sandbox-writes.ts'
import { findSandbox, podOf, type SandboxRow } from '../../shared/data/sandboxes.ts'
import type { Context } from '../../shared/platform/context.ts'
import { notify } from '../../shared/platform/notify.ts'
import type { PodCrashPoint } from '../faults/crash-points.ts'
import type { PodsContext } from './context.ts'
import { removePod } from './remove-pod.ts'

export type ExpiryContext = PodsContext & Pick<Context, 'jobs'>

export async function expireSandbox(worker: ExpiryContext, sandboxId: string): Promise<void> {
  const sandbox = await findSandbox(worker.db, sandboxId)
  if (!sandbox || sandbox.destroyed_at) return
  const msLeft = sandbox.expires_at.getTime() - (await readClock(worker.db)).getTime()
  // The sandbox was extended, or Redis' clock is ahead of PostgreSQL's, whose clock decides.
  if (msLeft > 0) return await worker.jobs.add('expire', { sandboxId }, msLeft)
  worker.reach('expire: before the row is ended')
  const ended = await markOverdue(worker.db, sandboxId)
  await finishEnd(worker, sandboxId, ended, 'expire: the row is ended, the pod lives')
  // The sandbox may have been extended since its row was read.
  if (!ended) await expireSandbox(worker, sandboxId)
}

/**
 * Deletes the pod of an ended sandbox. Does not require Redis.
 * @param ended the sandbox's row; set only if this process has just ended the sandbox
 * @param point the crash point after the sandbox has ended and before its pod is deleted
 */
export async function finishEnd(
  worker: PodsContext,
  sandboxId: string,
  ended: SandboxRow | undefined,
  point: PodCrashPoint,
): Promise<void> {
  if (ended) {
    const { account_id, destroy_reason: reason, destroy_detail: detail } = ended
    worker.reach(point)
    worker.log.info({ sandbox_id: sandboxId, account_id, reason, detail }, 'a sandbox ended')
    await notify(worker.redis, 'sandbox', sandboxId).catch(() => {})
  }
  await reapPod(worker, sandboxId)
}

/** Deletes a sandbox's pod. Does nothing if the sandbox has not ended. */
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
