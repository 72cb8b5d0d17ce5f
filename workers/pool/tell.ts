import { markAssigned } from '../../shared/data/sandbox-pods.ts'
import { podOf, type SandboxRow } from '../../shared/data/sandboxes.ts'
import type { WorkerContext } from '../context.ts'

/**
 * Tells a claimed pod whose it is and when it must end. May be repeated.
 * @throws {PodGone} it no longer runs
 * @throws {DriverUnavailable} it could not be told
 */
export async function tellPod({ db, driver, reach }: WorkerContext, sandbox: SandboxRow): Promise<void> {
  reach('claim: the row has the pod, which does not know it')
  // The pod is not older than its row says, so its deadline is never before the sandbox's cap, and no clock but
  // PostgreSQL's counts.
  const deadlineSeconds = (sandbox.expires_at.getTime() - sandbox.pod_since!.getTime()) / 1000
  await driver.assign(podOf(sandbox), { sandboxId: sandbox.id, deadlineSeconds })
  reach('claim: the pod knows whose it is, its row does not say so')
  await markAssigned(db, sandbox.id)
}
