import { findSandbox } from '../../shared/data/sandboxes.ts'
import { PodGone } from '../drivers/driver.ts'
import { tellPod } from '../pool/tell.ts'
import type { Processor } from './processor.ts'
import { replacePod } from './replace-pod.ts'

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
