/** Converts the result of a command's shell into the exit status that clients see. */
import type { ExecOutcome } from '../../shared/contract/exec.ts'
import { findSandbox, lockActive } from '../../shared/data/sandboxes.ts'
import { withTimeout } from '../../shared/lib/timeout.ts'
import { signalOf } from '../shell/exit-code.ts'
import type { CommandExit, CommandProcesses } from '../shell/slot.ts'
import { type Command, type ExitStatus, withoutExitCode } from './command.ts'
import type { ExecContext } from './context.ts'
import { killOrphans } from './orphans.ts'

/**
 * Maximum delay before a `lost` status is reported. During the delay, the remaining processes are killed, or
 * the row of a sandbox whose pod died is updated.
 */
const killWaitMs = 3_000

/** Returns the exit status to report. If the status is unknown, kills the remaining processes first. */
export async function describeExit(
  worker: ExecContext,
  command: Command,
  end: CommandExit,
  processes: CommandProcesses,
): Promise<ExitStatus> {
  const { sandboxId, accountId } = command.facts
  const isEnded = end.kind === 'exited' || (await killRemaining(worker, sandboxId, processes))
  // Waits for a concurrent transaction that destroys the sandbox.
  if (end.kind === 'lost') await lockActive(worker.db, { id: sandboxId, accountId }).catch(() => false)
  // Destroying a sandbox kills its commands, which may exit with any status. If the row cannot be read, the
  // shell's status is reported.
  const mayBeDestroyed = end.kind === 'lost' || end.code > 128
  const sandbox = mayBeDestroyed ? await findSandbox(worker.db, sandboxId).catch(() => undefined) : undefined
  if (sandbox?.destroyed_at) return withoutExitCode('killed', sandbox.destroy_reason ?? null)
  if (end.kind === 'lost')
    return withoutExitCode('lost', isEnded ? end.why : `${end.why}; it may still be running`)
  const signal = signalOf(end.code)
  const remarks = [
    ...(end.inRoot ? ['the command ran in /, because /workspace could not be entered'] : []),
    ...(end.isCut ? ['the end of its stderr was not received, so stderr may be incomplete'] : []),
  ]
  const reason = remarks.length > 0 ? remarks.join('; ') : null
  const start_error = end.startError ?? null
  return { status: signal ? 'signaled' : 'exited', exit_code: end.code, signal, reason, start_error }
}

/**
 * Kills the remaining processes of a command, and continues in the background after `killWaitMs`.
 * @returns false if they may still be running or their pod is gone
 */
async function killRemaining(
  worker: ExecContext,
  sandboxId: string,
  processes: CommandProcesses,
): Promise<boolean> {
  const change = worker.notifications.next('sandbox', sandboxId, killWaitMs)
  const isEnded = await withTimeout(killWaitMs, killOrphans(worker, processes), () => false)
  // Destroying a sandbox updates its row before its pod is deleted. If the pod died, the row is updated soon
  // after.
  if (!isEnded) await change
  return isEnded
}

/**
 * Records metrics, logs the exit and stores the exit status.
 * @returns the exit status in the row, if another process stored a different one because it assumed that this
 *   worker was lost
 */
export function reportExit(
  worker: ExecContext,
  requestId: string,
  command: Command,
  end: ExecOutcome,
): Promise<ExitStatus | undefined> {
  worker.metrics.execs.observe({ status: end.status }, end.duration_ms / 1000)
  const isLost = end.status === 'lost'
  worker.log[isLost ? 'warn' : 'info'](
    {
      worker_id: worker.id,
      exec_id: command.id,
      request_id: requestId,
      sandbox_id: command.facts.sandboxId,
      account_id: command.facts.accountId,
      status: end.status,
      ms: Math.round(end.duration_ms),
      reason: isLost ? end.reason : undefined,
    },
    isLost ? 'a command is lost' : 'a command ended',
  )
  return worker.exitStatuses.write(end)
}
