/** What every call that works inside a sandbox begins and ends with. */

import type { DatabaseClock } from '../../shared/data/clock.ts'
import { findRemainingTime } from '../../shared/data/sandbox-pods.ts'
import { envSealContext, findSandbox, podOf, type SandboxRow } from '../../shared/data/sandboxes.ts'
import { readPendingInput } from '../../shared/platform/event-loop-stall.ts'
import { Problem, unavailable } from '../../shared/platform/problem.ts'
import { assertRunning, refuseDestroyed, refuseMissing } from '../../shared/platform/sandbox-check.ts'
import type { Opener } from '../../shared/platform/seal.ts'
import { DriverUnavailable, PodExhausted, PodGone } from '../drivers/driver.ts'
import type { Resource } from '../drivers/exhausted.ts'
import { awaitReplacement, beginUse, renewPod } from '../pods/claimed-pod.ts'
import type { PodsContext } from '../pods/context.ts'
import { runCommand, type SlotRunResult } from '../shell/run.ts'
import type { ShellCommand } from '../shell/script.ts'
import type { CommandIo, Slot } from '../shell/slot.ts'
import type { SlotPool } from '../shell/slot-pool.ts'

/** What a call into a sandbox takes: a warm pod that is found dead is replaced. */
export interface SandboxContext extends PodsContext {
  slots: Pick<SlotPool, 'adopt' | 'take'>
  /** Opens what was sealed to SECRETS_PUBLIC_KEY. */
  opener: Opener
}

export interface EnteredSandbox {
  sandbox: SandboxRow
  /** Milliseconds until the sandbox reaches its cap. */
  leftMs: number
  clock: DatabaseClock
}

/** @throws {Problem} when no command can run in it now */
export async function enter(
  worker: SandboxContext,
  call: { sandboxId: string; accountId: string },
): Promise<EnteredSandbox> {
  const own = await readOwn(worker, call)
  const { sandbox } = own
  // It was ready when the API looked. Since then its warm pod was found dead.
  const isReplaced = sandbox.claim === 'replaced' && !sandbox.ready_at && !sandbox.destroyed_at
  if (isReplaced) await awaitReplacement(worker, sandbox.id).catch(() => {})
  return enterNow(isReplaced ? await readOwn(worker, call) : own)
}

async function readOwn(
  worker: SandboxContext,
  { sandboxId, accountId }: { sandboxId: string; accountId: string },
) {
  const found = await findRemainingTime(worker.db, sandboxId)
  if (!found || found.account_id !== accountId) refuseMissing()
  const { left_ms: leftMs, clock_ms: ms, ...sandbox } = found
  return { sandbox, leftMs, clock: { ms, readAt: performance.now() } }
}

function enterNow({ leftMs, sandbox, clock }: Awaited<ReturnType<typeof readOwn>>): EnteredSandbox {
  assertRunning(sandbox)
  return { sandbox, leftMs: Math.max(1, leftMs), clock }
}

export function environmentOf(
  { opener }: Pick<SandboxContext, 'opener'>,
  sandbox: SandboxRow,
): Record<string, string> {
  if (!sandbox.sealed_env) return {}
  return JSON.parse(opener.open(sandbox.sealed_env, envSealContext(sandbox.id))) as Record<string, string>
}

/** Runs a command of the worker's own in the sandbox's pod. @throws {Problem} when nothing has run */
export async function runInside(
  worker: SandboxContext,
  sandbox: SandboxRow,
  command: ShellCommand,
  io: CommandIo,
  options: { timeoutMs: number; signal: AbortSignal },
): Promise<SlotRunResult> {
  const slot = await openSlotIn(worker, sandbox)
  // A client that was told meanwhile that this call is lost has hung up: then nothing is run.
  await readPendingInput()
  const end = await runCommand(worker.driver, slot, command, io, options)
  if (end.kind === 'lost' && end.usedUp) throw exhausted(end.usedUp)
  return end
}

/** A slot in the sandbox's pod. @throws {Problem} when none can be opened */
export const openSlotIn = (worker: SandboxContext, sandbox: SandboxRow): Promise<Slot> =>
  reachPod(worker, sandbox, (now) => takeSlot(worker, now))

/** A slot in the pod of this row. @throws what the driver throws when none can be opened */
export async function takeSlot(worker: SandboxContext, sandbox: SandboxRow): Promise<Slot> {
  const { slot } = await worker.slots.take(sandbox.id, podOf(sandbox))
  return await beginUse(worker, sandbox, slot)
}

/**
 * Does `work`, and turns what it throws when the pod is gone or out of reach into what the client is to see. A warm pod
 * that was gone before anything ran is replaced, and `work` is done once more with the row that has the new pod.
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
    throw unavailable('The sandbox cannot be reached right now; nothing was run. Try again.', error)
  }
}

const remedies: Record<Resource, string> = {
  processes:
    'It has as many processes as it may have. End some, or reset it: that ends all and keeps its files.',
  memory:
    'Its memory is used up. Reset it, which ends its processes and keeps its files; files in /tmp may count.',
  disk: 'Its disk is full. Delete files in it.',
}

/** Nothing has run for want of it. */
export const exhausted = (resource: Resource): Problem =>
  new Problem(
    'sandbox_exhausted',
    `The sandbox has no room for this; nothing was run. ${remedies[resource]}`,
    {
      members: { exhausted: resource },
    },
  )
