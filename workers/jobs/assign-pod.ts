import { findSandbox } from '../../shared/data/sandboxes.ts'
import { PodGone } from '../drivers/driver.ts'
import { tellPod } from '../pool/tell.ts'
import type { Processor } from './processor.ts'
import { replacePod } from './replace-pod.ts'

/** Tells the warm pod of a sandbox whose it is, and when it has to end. Replaces one that has died. */
export const assignPod: Processor<'assignPod'> = async ({ sandboxId }, worker) => {
  const sandbox = await findSandbox(worker.db, sandboxId)
  if (!sandbox?.pod_since || sandbox.destroyed_at || sandbox.claim === 'replaced') return
  try {
    await tellPod(worker, sandbox)
  } catch (error) {
    if (!(error instanceof PodGone)) throw error
    // In one that served, the death is the sandbox's own: whoever watches over pods ends it.
    await replacePod(worker, sandbox)
  }
}
