/** What every call that works inside a sandbox begins and ends with. */

import { Problem, unavailable } from '../../shared/problem.ts'
import { envPlace, findSandbox, type SandboxRow } from '../../shared/sandboxes.ts'
import type { WorkerContext } from '../context.ts'
import { DriverUnavailable, PodGone, podName } from '../drivers/driver.ts'
import { readClock } from '../sandbox-rows.ts'
import { type RunEnd, runCommand } from '../shell/run.ts'
import type { Command } from '../shell/script.ts'
import type { CommandIo } from '../shell/slot.ts'

export interface Inside {
  sandbox: SandboxRow
  /** Milliseconds until the sandbox reaches its cap. */
  leftMs: number
}

/** @throws {Problem} when no command can run in it now */
export async function enter(
  worker: WorkerContext,
  { sandboxId, accountId }: { sandboxId: string; accountId: string },
): Promise<Inside> {
  const sandbox = await findSandbox(worker.db, sandboxId)
  if (!sandbox || sandbox.account_id !== accountId)
    throw new Problem('not_found', 'There is no such sandbox.')
  if (sandbox.destroyed_at) throw destroyed(sandbox)
  if (!sandbox.ready_at) {
    throw new Problem('sandbox_starting', 'The sandbox is still starting. Try again.', {
      retryAfterSeconds: 1,
    })
  }
  const leftMs = sandbox.expires_at.getTime() - (await readClock(worker.db)).getTime()
  return { sandbox, leftMs: Math.max(1, leftMs) }
}

/** The environment that the sandbox was created with. */
export function environmentOf({ sealer }: WorkerContext, sandbox: SandboxRow): Record<string, string> {
  if (!sandbox.sealed_env) return {}
  return JSON.parse(sealer.open(sandbox.sealed_env, envPlace(sandbox.id))) as Record<string, string>
}

/** Runs a command in the sandbox's own pod. @throws {Problem} when nothing has run */
export async function runInside(
  worker: WorkerContext,
  sandbox: SandboxRow,
  command: Command,
  io: CommandIo,
  options: { timeoutMs: number; signal: AbortSignal },
): Promise<RunEnd> {
  const pod = { name: podName(sandbox.id), uid: sandbox.pod_uid ?? undefined }
  try {
    return await runCommand(worker.driver, pod, command, io, options)
  } catch (error) {
    if (!(error instanceof PodGone || error instanceof DriverUnavailable)) throw error
    const now = await findSandbox(worker.db, sandbox.id)
    if (now?.destroyed_at) throw destroyed(now)
    throw unavailable('The sandbox cannot be reached right now; nothing was run. Try again.', error)
  }
}

function destroyed({ destroy_reason, destroy_detail }: SandboxRow): Problem {
  return new Problem('sandbox_destroyed', `The sandbox is destroyed (${destroy_reason}). Create another.`, {
    members: { destroy_reason, destroy_detail },
  })
}
