import type { DatabaseClock } from '../../shared/data/clock.ts'
import { findRemainingTime } from '../../shared/data/sandbox-pods.ts'
import { recordUse } from '../../shared/data/sandbox-writes.ts'
import { envSealContext, findSandbox, podOf, type SandboxRow } from '../../shared/data/sandboxes.ts'
import { OpenCounts } from '../../shared/lib/open-counts.ts'
import { untilAborted, withTimeout } from '../../shared/lib/timeout.ts'
import { readPendingInput } from '../../shared/platform/event-loop-stall.ts'
import { Problem, unavailable } from '../../shared/platform/problem.ts'
import { assertRunning, refuseDestroyed, refuseMissing } from '../../shared/platform/sandbox-check.ts'
import type { Opener } from '../../shared/platform/seal.ts'
import { DriverUnavailable, PodExhausted, PodGone } from '../drivers/driver.ts'
import type { Resource } from '../drivers/exhausted.ts'
import { awaitReplacement, beginUse, renewPod } from '../pods/claimed-pod.ts'
import type { PodsContext } from '../pods/context.ts'
import { killGroup } from '../shell/kill.ts'
import type { ShellCommand } from '../shell/script.ts'
import type { CommandExit, CommandIo, Slot } from '../shell/slot.ts'
import type { SlotPool } from '../shell/slot-pool.ts'

export interface SandboxContext extends PodsContext {
  slots: Pick<SlotPool, 'adopt' | 'take' | 'giveBack'>
  opener: Opener
}

export interface EnteredSandbox {
  sandbox: SandboxRow
  leftMs: number
  clock: DatabaseClock
}

/**
 * Loads the sandbox of a call. If its warm pod is being replaced, first waits for the new pod.
 * @throws {Problem} if the sandbox does not exist or is not running
 */
export async function enter(
  worker: SandboxContext,
  call: { sandboxId: string; accountId: string },
): Promise<EnteredSandbox> {
  const loaded = await loadSandbox(worker, call)
  const { sandbox } = loaded
  // Since the API checked the sandbox, its warm pod has been found dead and is being replaced.
  const isReplaced = sandbox.claim === 'replaced' && !sandbox.ready_at && !sandbox.destroyed_at
  if (isReplaced) await awaitReplacement(worker, sandbox.id).catch(() => {})
  const entered = isReplaced ? await loadSandbox(worker, call) : loaded
  assertRunning(entered.sandbox)
  // The sandbox has expired, but no worker has destroyed it yet.
  if (entered.leftMs <= 0) refuseDestroyed({ ...entered.sandbox, destroy_reason: 'expired' })
  return entered
}

/**
 * Reads a sandbox's row. Also records that the sandbox is in use, so that it is not destroyed as idle before
 * or during the call.
 */
async function loadSandbox(
  worker: SandboxContext,
  call: { sandboxId: string; accountId: string },
): Promise<EnteredSandbox> {
  const { sandboxId, accountId } = call
  const found = await findRemainingTime(worker.db, sandboxId)
  if (!found || found.account_id !== accountId) refuseMissing()
  const { left_ms: leftMs, clock_ms: ms, is_activity_due: isDue, ...sandbox } = found
  const loaded = { sandbox, leftMs, clock: { ms, readAt: performance.now() } }
  // If the use cannot be recorded, the sandbox has just been destroyed.
  return !isDue || (await recordUse(worker.db.share(accountId), sandboxId))
    ? loaded
    : await loadSandbox(worker, call)
}

export function environmentOf(
  { opener }: Pick<SandboxContext, 'opener'>,
  sandbox: SandboxRow,
): Record<string, string> {
  if (!sandbox.sealed_env) return {}
  return JSON.parse(opener.open(sandbox.sealed_env, envSealContext(sandbox.id))) as Record<string, string>
}

/** Runs a command in a slot. Kills its process group after `timeoutMs` or when the signal aborts. */
export async function runInside(
  worker: SandboxContext,
  sandbox: SandboxRow,
  command: ShellCommand,
  io: CommandIo,
  { timeoutMs, signal }: { timeoutMs: number; signal: AbortSignal },
): Promise<CommandExit | { kind: 'timed_out' | 'cancelled' }> {
  const slot = await openSlotIn(worker, sandbox)
  let hasExited = false
  try {
    // If the API has reported this RPC as lost, it has disconnected. Reading that aborts `signal` before
    // anything is run.
    await readPendingInput()
    if (signal.aborted) return { kind: 'cancelled' }
    const ended = slot.run(command, io)
    const endedOrCancelled = untilAborted(signal, ended).catch((error) => {
      if (!signal.aborted) throw error
      return { kind: 'cancelled' } as const
    })
    const end = await withTimeout(timeoutMs, endedOrCancelled, () => ({ kind: 'timed_out' }) as const)
    if (end.kind === 'timed_out' || end.kind === 'cancelled')
      await killGroup(worker.driver, slot.processes, ended)
    if (end.kind === 'lost' && end.usedUp) throw exhausted(end.usedUp)
    hasExited = end.kind === 'exited'
    return end
  } finally {
    if (hasExited) void giveBackSlot(worker, sandbox.id, slot)
    else slot.close()
  }
}

export const openSlotIn = (worker: SandboxContext, sandbox: SandboxRow): Promise<Slot> =>
  reachPod(worker, sandbox, (now) => takeSlot(worker, now))

export async function takeSlot(worker: SandboxContext, sandbox: SandboxRow): Promise<Slot> {
  const { slot } = await worker.slots.take(sandbox.id, podOf(sandbox))
  return await beginUse(worker, sandbox, slot)
}

/**
 * Lets later commands use a slot whose command has exited. Must not be called if a signal might still reach the
 * slot's processes, because it could hit the next command.
 */
export async function giveBackSlot(
  worker: Pick<SandboxContext, 'slotOwner' | 'slots'>,
  sandboxId: string,
  slot: Slot,
): Promise<void> {
  if (!worker.slotOwner.owns(sandboxId)) slot.closeSoon()
  else if (await slot.canRunAgain()) worker.slots.giveBack(sandboxId, slot)
}

/**
 * Runs `work`, which uses the sandbox's pod. If a claimed warm pod disappears before anything has run in it,
 * runs `work` again with a new pod.
 * @throws {Problem} if the pod is gone, is unreachable or has exhausted a resource
 */
export async function reachPod<T>(
  worker: SandboxContext,
  sandbox: SandboxRow,
  work: (sandbox: SandboxRow) => Promise<T>,
): Promise<T> {
  try {
    return await work(sandbox).catch(async (error) => {
      const renewed = error instanceof PodGone ? await renewPod(worker, sandbox) : undefined
      if (!renewed) throw error
      return await work(renewed)
    })
  } catch (error) {
    if (!(error instanceof PodGone || error instanceof DriverUnavailable)) throw error
    const now = await findSandbox(worker.db, sandbox.id)
    if (now?.destroyed_at) refuseDestroyed(now)
    if (error instanceof PodExhausted) throw exhausted(error.resource)
    throw unavailable('The sandbox is currently unreachable; nothing was run. Try again.', error)
  }
}

const remedies: Record<Resource, string> = {
  processes: 'Stop some processes, or reset the sandbox. A reset kills all processes and keeps files.',
  memory:
    'Delete files in /tmp, which may use memory, or reset the sandbox. A reset kills all processes and keeps files.',
  disk: 'Delete some of its files.',
}

export const exhausted = (resource: Resource): Problem =>
  new Problem(
    'sandbox_exhausted',
    `The sandbox has reached its ${resource === 'processes' ? 'process' : resource} limit; nothing was run. ${remedies[resource]}`,
    { members: { exhausted: resource } },
  )

/**
 * Limits how many connections of one kind a sandbox has on this worker. The returned function counts a
 * connection, and returns a function that releases it.
 * @param detail the message of the `rate_limited` error at the limit
 */
export function limitOpen(max: number, detail: string): (sandboxId: string) => () => void {
  const open = new OpenCounts()
  return (sandboxId) => {
    if (open.of(sandboxId) >= max) throw new Problem('rate_limited', detail, { retryAfterSeconds: 1 })
    return open.begin(sandboxId)
  }
}
