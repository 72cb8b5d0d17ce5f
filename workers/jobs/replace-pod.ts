/**
 * The first use of a claimed warm pod, and its death before that. Until something ran in it nothing can be lost with
 * it, so the sandbox quietly gets a new pod. A claimed pod in which nothing ever runs may stay, unbilled, until its own
 * deadline.
 */

import { limits } from '../../shared/contract/limits.ts'
import { dropWarmPod, markUsed } from '../../shared/data/sandbox-pods.ts'
import { findSandbox, podOf, type SandboxRow } from '../../shared/data/sandboxes.ts'
import { notify } from '../../shared/platform/notify.ts'
import { within } from '../../shared/platform/patience.ts'
import type { WorkerContext } from '../context.ts'
import { PodGone } from '../drivers/driver.ts'
import { removePod } from '../pods/remove-pod.ts'
import { tellPod } from '../pool/tell.ts'
import type { Slot } from '../shell/slot.ts'
import { givePod } from './create-pod.ts'

/**
 * Called before the first command goes into a slot of a warm pod. First tells the pod when it must end. So nothing of a
 * client's ever runs in a pod that would outlive its sandbox, even if all workers stood still from here on.
 * @throws {PodGone} the sandbox has another pod by now, or the pod is dead
 * @throws {DriverUnavailable} the pod could not be told
 */
export async function useWarmPod(worker: WorkerContext, sandbox: SandboxRow, slot: Slot): Promise<Slot> {
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
export async function replacePod(worker: WorkerContext, sandbox: SandboxRow): Promise<boolean> {
  const { db, log, redis, reach } = worker
  const dead = podOf(sandbox)
  if (sandbox.claim !== 'unused' || !dead.uid) return false
  if (!(await dropWarmPod(db, sandbox.id, dead.uid))) return false
  reach('replace: the row wants another pod, nobody makes it')
  log.info({ sandbox_id: sandbox.id, account_id: sandbox.account_id }, 'a warm pod was dead and is replaced')
  await notify(redis, 'sandbox', sandbox.id).catch(() => {})
  // Nothing refers to it any more. If this fails, the sweep deletes it.
  void removePod(worker, dead).catch(() => {})
  await givePod(worker, sandbox.id)
  return true
}

/**
 * Resolves when the pod that replaces a dead one is ready, or has not become ready in time.
 * @param sandbox given when its pod was found dead just now, which others may not know yet
 */
export async function awaitReplacement(
  worker: WorkerContext,
  sandboxId: string,
  sandbox?: SandboxRow,
): Promise<void> {
  const replacing = async () => {
    if (sandbox && (await replacePod(worker, sandbox))) return
    // Another worker may do the same: creating a pod is safe beside itself, and ends when the pod is ready.
    await givePod(worker, sandboxId)
  }
  await within(limits.startingWaitMs, replacing())
}

/**
 * For a command that found no pod: replaces the pod where that is allowed, and updates `sandbox`.
 * @param tried the uid of the pod that was not there
 * @returns whether there is another pod to try
 */
export async function renewPod(
  worker: WorkerContext,
  sandbox: SandboxRow,
  tried: string | null | undefined,
): Promise<boolean> {
  await awaitReplacement(worker, sandbox.id, sandbox)
  const now = await findSandbox(worker.db, sandbox.id)
  if (!now?.ready_at || now.destroyed_at || now.pod_uid === tried) return false
  Object.assign(sandbox, now)
  return true
}
