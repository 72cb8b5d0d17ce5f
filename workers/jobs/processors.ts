/** The processor of each job. This file exports nothing else: queue.ts derives its table from it. */

import { readClock } from '../../shared/data/clock.ts'
import { findSandbox } from '../../shared/data/sandboxes.ts'
import type { JobName, Jobs } from '../../shared/platform/jobs.ts'
import type { WorkerContext } from '../context.ts'
import { PodGone } from '../drivers/driver.ts'
import { tellPod } from '../pool/tell.ts'
import { givePod } from './create-pod.ts'
import { endAndDelete, reapPod } from './end-and-delete.ts'
import { replacePod } from './replace-pod.ts'

/** Does one job. Safe to run twice, late, or beside itself: it reads its row first. The log names its request. */
export type Processor<N extends JobName> = (
  args: Omit<Jobs[N], 'requestId'>,
  worker: WorkerContext,
) => Promise<void>

export const createPod: Processor<'createPod'> = ({ sandboxId }, worker) => givePod(worker, sandboxId)

/** Tells a claimed warm pod whose it is and when it must end. Replaces a pod that has died. */
export const assignPod: Processor<'assignPod'> = async ({ sandboxId }, worker) => {
  const sandbox = await findSandbox(worker.db, sandboxId)
  if (!sandbox?.pod_since || sandbox.destroyed_at || sandbox.claim === 'replaced') return
  try {
    await tellPod(worker, sandbox)
  } catch (error) {
    if (!(error instanceof PodGone)) throw error
    // Once a command ran in the pod, its death is the sandbox's end, which the watch or the sweep writes down.
    await replacePod(worker, sandbox)
  }
}

export const deletePod: Processor<'deletePod'> = ({ sandboxId }, worker) => reapPod(worker, sandboxId)

/** Ends a sandbox that reached its cap. */
export const expire: Processor<'expire'> = async ({ sandboxId }, worker) => {
  const sandbox = await findSandbox(worker.db, sandboxId)
  if (!sandbox || sandbox.destroyed_at) return
  const msLeft = sandbox.expires_at.getTime() - (await readClock(worker.db)).getTime()
  // Redis' clock may run ahead of PostgreSQL's, and only PostgreSQL's counts.
  if (msLeft > 0) return await worker.jobs.add('expire', { sandboxId }, msLeft)
  worker.reach('expire: before the row is ended')
  await endAndDelete(worker, sandboxId, 'expired', null, () =>
    worker.reach('expire: the row is ended, the pod lives'),
  )
}
