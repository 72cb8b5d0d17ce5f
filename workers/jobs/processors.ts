/** The processor of each job. */

import { readClock } from '../../shared/data/clock.ts'
import { findSandbox } from '../../shared/data/sandboxes.ts'
import type { Context } from '../../shared/platform/context.ts'
import type { JobName } from '../../shared/platform/jobs.ts'
import { assignPod } from '../pods/claimed-pod.ts'
import type { PodsContext } from '../pods/context.ts'
import { createPod } from '../pods/create-pod.ts'
import { endAndDelete, reapPod } from '../pods/end-and-delete.ts'

/** An early `expire` adds itself again. */
export type JobsContext = PodsContext & Pick<Context, 'jobs'>

/**
 * Does one job. Safe to run twice, late, or beside itself: it reads its row first. The log of the worker that it is
 * given names the request.
 */
type Processor = (worker: JobsContext, sandboxId: string) => Promise<void>

export const processors: Record<JobName, Processor> = { createPod, assignPod, deletePod: reapPod, expire }

/** Ends a sandbox that reached its cap. */
async function expire(worker: JobsContext, sandboxId: string): Promise<void> {
  const sandbox = await findSandbox(worker.db, sandboxId)
  if (!sandbox || sandbox.destroyed_at) return
  const msLeft = sandbox.expires_at.getTime() - (await readClock(worker.db)).getTime()
  // Redis' clock may run ahead of PostgreSQL's, and only PostgreSQL's counts.
  if (msLeft > 0) return await worker.jobs.add('expire', { sandboxId }, msLeft)
  worker.reach('expire: before the row is ended')
  await endAndDelete(worker, sandboxId, 'expired', null, 'expire: the row is ended, the pod lives')
}
