import { findSandbox, podOf } from '../../shared/sandboxes.ts'
import { PodGone } from '../drivers/driver.ts'
import { replacePod } from '../pool/replace.ts'
import { markAssigned } from '../sandbox-rows.ts'
import type { Processor } from './processor.ts'

/** Tells the warm pod of a sandbox whose it is, and when it has to end. Replaces one that has died. */
export const assignPod: Processor<'assignPod'> = async ({ sandboxId }, worker) => {
  const { db, driver, reach } = worker
  const sandbox = await findSandbox(db, sandboxId)
  if (!sandbox?.pod_since || sandbox.destroyed_at || sandbox.claim === 'replaced') return
  reach('claim: the row has the pod, which does not know it')
  // The pod is not older than what the row says, so its deadline is never before the sandbox's end.
  const deadlineSeconds = (sandbox.expires_at.getTime() - sandbox.pod_since.getTime()) / 1000
  try {
    await driver.assign(podOf(sandbox), { sandboxId, deadlineSeconds })
  } catch (error) {
    if (!(error instanceof PodGone)) throw error
    // In one that served, the death is the sandbox's own: whoever watches over pods ends it.
    return void (await replacePod(worker, sandbox))
  }
  reach('claim: the pod knows whose it is, its row does not say so')
  await markAssigned(db, sandboxId)
}
