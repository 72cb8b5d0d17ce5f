/**
 * A claimed warm pod: it is told whose it is, used for the first time, and replaced if it died before that. Until
 * something ran in it nothing can be lost with it, so the sandbox quietly gets a new pod. A claimed pod in which nothing
 * ever runs may stay, unbilled, until its own deadline.
 */

import { limits } from '../../shared/contract/limits.ts'
import { dropWarmPod, markAssigned, markUsed } from '../../shared/data/sandbox-writes.ts'
import { findSandbox, podOf, type SandboxRow } from '../../shared/data/sandboxes.ts'
import { withTimeout } from '../../shared/lib/timeout.ts'
import { notify } from '../../shared/platform/notify.ts'
import { PodGone } from '../drivers/driver.ts'
import type { Slot } from '../shell/slot.ts'
import type { PodsContext } from './context.ts'
import { createPod } from './create-pod.ts'
import { removePod } from './remove-pod.ts'

/** Tells a claimed pod whose it is and when it must end. Replaces a pod that has died. May run twice, or late. */
export async function assignPod(worker: PodsContext, sandboxId: string): Promise<void> {
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

/**
 * May be repeated.
 * @throws {PodGone} it no longer runs
 * @throws {DriverUnavailable} it could not be told
 */
async function tellPod(
  { db, driver, reach }: Pick<PodsContext, 'db' | 'driver' | 'reach'>,
  sandbox: SandboxRow,
): Promise<void> {
  reach('claim: the row has the pod, the pod is not assigned')
  // The pod is not older than its row says, so its deadline is never before the sandbox's cap, and no clock but
  // PostgreSQL's counts.
  const deadlineSeconds = (sandbox.expires_at.getTime() - sandbox.pod_since!.getTime()) / 1000
  await driver.assign(podOf(sandbox), { sandboxId: sandbox.id, deadlineSeconds })
  reach('claim: the pod is assigned, its row is not marked assigned')
  await markAssigned(db, sandbox.id)
}

/**
 * Called before the first command goes into a slot of a warm pod. First tells the pod when it must end. So nothing of a
 * client's ever runs in a pod that would outlive its sandbox, even if all workers stood still from here on.
 * @throws {PodGone} the sandbox has another pod by now, or the pod is dead
 * @throws {DriverUnavailable} the pod could not be told
 */
export async function beginUse(worker: PodsContext, sandbox: SandboxRow, slot: Slot): Promise<Slot> {
  if (sandbox.claim !== 'unused') return slot
  const use = async () => {
    await tellPod(worker, sandbox)
    return await markUsed(worker.db, sandbox.id, sandbox.pod_uid!)
  }
  if (await slot.orClose(use())) return slot
  slot.close()
  throw new PodGone('The sandbox has another pod.')
}

/**
 * Gives a sandbox whose warm pod is dead a new pod, unless something has run in the old one.
 * @returns whether it did
 */
export async function replacePod(worker: PodsContext, sandbox: SandboxRow): Promise<boolean> {
  const { db, log, redis, reach } = worker
  const dead = podOf(sandbox)
  if (sandbox.claim !== 'unused' || !dead.uid) return false
  if (!(await dropWarmPod(db, sandbox.id, dead.uid))) return false
  reach('replace: the row needs another pod, none has been created')
  log.info({ sandbox_id: sandbox.id, account_id: sandbox.account_id }, 'a warm pod was dead and is replaced')
  await notify(redis, 'sandbox', sandbox.id).catch(() => {})
  // Nothing refers to it any more. If this fails, the sweep deletes it.
  void removePod(worker, dead).catch(() => {})
  await createPod(worker, sandbox.id)
  return true
}

/**
 * Resolves when the pod that replaces a dead one is ready, or has not become ready in time.
 * @param sandbox given when its pod was found dead just now, which others may not know yet
 */
export async function awaitReplacement(
  worker: PodsContext,
  sandboxId: string,
  sandbox?: SandboxRow,
): Promise<void> {
  const replacing = async () => {
    if (sandbox && (await replacePod(worker, sandbox))) return
    // Another worker may do the same: creating a pod is safe beside itself, and ends when the pod is ready.
    await createPod(worker, sandboxId)
  }
  await withTimeout(limits.startingWaitMs, replacing())
}

/**
 * For a command that did not find the pod of this row: replaces the pod where that is allowed.
 * @returns the sandbox's row with another pod to try; undefined when there is none
 */
export async function renewPod(worker: PodsContext, sandbox: SandboxRow): Promise<SandboxRow | undefined> {
  await awaitReplacement(worker, sandbox.id, sandbox)
  const now = await findSandbox(worker.db, sandbox.id)
  return now?.ready_at && !now.destroyed_at && now.pod_uid !== sandbox.pod_uid ? now : undefined
}
