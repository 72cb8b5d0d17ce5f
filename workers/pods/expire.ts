import { readClock } from '../../shared/data/clock.ts'
import { findSandbox } from '../../shared/data/sandboxes.ts'
import type { Context } from '../../shared/platform/context.ts'
import type { PodsContext } from './context.ts'
import { endOverdueAndDeletePod } from './destroy-and-delete-pod.ts'

export type ExpiryContext = PodsContext & Pick<Context, 'jobs'>

export async function expireSandbox(worker: ExpiryContext, sandboxId: string): Promise<void> {
  const sandbox = await findSandbox(worker.db, sandboxId)
  if (!sandbox || sandbox.destroyed_at) return
  const msLeft = sandbox.expires_at.getTime() - (await readClock(worker.db)).getTime()
  // The sandbox was extended, or Redis' clock is ahead of PostgreSQL's, whose clock decides.
  if (msLeft > 0) return await worker.jobs.add('expire', { sandboxId }, msLeft)
  worker.reach('expire: before the row is ended')
  const isEnded = await endOverdueAndDeletePod(worker, sandboxId, 'expire: the row is ended, the pod lives')
  // The sandbox has been extended since its row was read.
  if (!isEnded) await expireSandbox(worker, sandboxId)
}
