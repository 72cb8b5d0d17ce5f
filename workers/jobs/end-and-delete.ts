import type { DestroyReason } from '../../shared/contract/sandboxes.ts'
import { endSandbox } from '../../shared/data/sandboxes.ts'
import { notify } from '../../shared/platform/notify.ts'
import type { WorkerContext } from '../context.ts'
import { deletePod } from './delete-pod.ts'

/**
 * Ends a sandbox for a reason of the workers' own, then deletes its pod. It needs only PostgreSQL and the cluster, so a
 * Redis that is away delays nothing.
 * @param between called when the row is ended and the pod still lives
 */
export async function endAndDelete(
  worker: WorkerContext,
  sandboxId: string,
  reason: DestroyReason,
  detail: string | null,
  between: () => void,
): Promise<void> {
  const ended = await endSandbox(worker.db, sandboxId, reason, detail)
  if (ended) {
    between()
    worker.log.info(
      { sandbox_id: sandboxId, account_id: ended.account_id, reason: ended.destroy_reason, detail },
      'a sandbox ended',
    )
    await notify(worker.redis, 'sandbox', sandboxId).catch(() => {})
  }
  await deletePod({ sandboxId, requestId: '' }, worker)
}
