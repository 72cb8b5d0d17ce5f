/**
 * Assigns claimed pods to sandboxes. A claimed pod is a warm pod that a create request has taken for its
 * sandbox. If it dies before its first command, it is replaced, because it contains no data.
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

/** Sets a claimed pod's label and deadline, or replaces the pod if it is dead. Can safely run twice. */
export async function assignPod(worker: PodsContext, sandboxId: string): Promise<void> {
  const sandbox = await findSandbox(worker.db, sandboxId)
  if (!sandbox?.pod_since || sandbox.destroyed_at || sandbox.claim === 'replaced') return
  try {
    await assignToPod(worker, sandbox)
  } catch (error) {
    if (!(error instanceof PodGone)) throw error
    // Does nothing if a command has run in the pod. The watch or the reconciler then ends the sandbox.
    await replacePod(worker, sandbox)
  }
}

async function assignToPod(
  { db, driver, reach }: Pick<PodsContext, 'db' | 'driver' | 'reach'>,
  sandbox: SandboxRow,
): Promise<void> {
  reach('claim: the row has the pod, the pod is not assigned')
  // By PostgreSQL's clock, the pod starts no earlier than `pod_since`, so the deadline never precedes
  // `max_expires_at`.
  const deadlineSeconds = (sandbox.max_expires_at.getTime() - sandbox.pod_since!.getTime()) / 1000
  await driver.assign(podOf(sandbox), { sandboxId: sandbox.id, deadlineSeconds })
  reach('claim: the pod is assigned, its row is not marked assigned')
  await markAssigned(db, sandbox.id)
}

/**
 * Sets a claimed pod's deadline before its first command, so that the pod ends in time even without a worker.
 * @throws {PodGone} if the sandbox already has a different pod, or the pod is dead
 */
export async function beginUse(worker: PodsContext, sandbox: SandboxRow, slot: Slot): Promise<Slot> {
  if (sandbox.claim !== 'unused') return slot
  const use = async () => {
    await assignToPod(worker, sandbox)
    return await markUsed(worker.db, sandbox.id, sandbox.pod_uid!)
  }
  if (await slot.orClose(use())) return slot
  slot.close()
  throw new PodGone('The sandbox now has a different pod.')
}

/** Replaces a dead claimed pod. Returns false if a command has run in the pod, or it was already replaced. */
export async function replacePod(worker: PodsContext, sandbox: SandboxRow): Promise<boolean> {
  const { db, log, redis, reach } = worker
  const dead = podOf(sandbox)
  if (sandbox.claim !== 'unused' || !dead.uid) return false
  if (!(await dropWarmPod(db, sandbox.id, dead.uid))) return false
  reach('replace: the row needs another pod, none has been created')
  log.info({ sandbox_id: sandbox.id, account_id: sandbox.account_id }, 'replacing a dead warm pod')
  await notify(redis, 'sandbox', sandbox.id).catch(() => {})
  // If this fails, the reconciler deletes the pod, which no row refers to any more.
  void removePod(worker, dead).catch(() => {})
  await createPod(worker, sandbox.id)
  return true
}

/**
 * Waits until a sandbox's dead pod has been replaced and the new pod is ready, or until a time limit passes.
 * @param sandbox set if the caller has just found its pod dead and the database might not show that yet
 */
export async function awaitReplacement(
  worker: PodsContext,
  sandboxId: string,
  sandbox?: SandboxRow,
): Promise<void> {
  const replacing = async () => {
    if (sandbox && (await replacePod(worker, sandbox))) return
    // Another worker may be creating the same pod. Both calls then resolve when the pod is ready.
    await createPod(worker, sandboxId)
  }
  await withTimeout(limits.startingWaitMs, replacing())
}

/**
 * Replaces a claimed pod that was found dead or missing, provided that no command has run in it.
 * @returns the sandbox's row if it has a new pod that is ready
 */
export async function renewPod(worker: PodsContext, sandbox: SandboxRow): Promise<SandboxRow | undefined> {
  await awaitReplacement(worker, sandbox.id, sandbox)
  const now = await findSandbox(worker.db, sandbox.id)
  return now?.ready_at && !now.destroyed_at && now.pod_uid !== sandbox.pod_uid ? now : undefined
}
