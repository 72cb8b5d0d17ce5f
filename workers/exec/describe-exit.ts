import type { ExecOutcome } from '../../shared/contract/exec.ts'
import { findSandbox, lockActive } from '../../shared/data/sandboxes.ts'
import { withTimeout } from '../../shared/lib/timeout.ts'
import { type CommandExit, type CommandProcesses, signalOf } from '../shell/slot.ts'
import { type Command, type ExitStatus, withoutExitCode } from './command.ts'
import type { ExecContext } from './context.ts'
import { killOrphans } from './orphans.ts'

/**
 * Maximum delay before a command is reported as `lost`, during which its remaining processes are killed. If
 * the pod died, the sandbox's row may be updated in this time; its destroy reason is then reported instead.
 */
const killWaitMs = 3_000

/**
 * Returns the exit status to report for a command. If the shell did not report one, first kills the command's
 * remaining processes.
 */
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
  // A command killed with its sandbox may exit with any status. If the row cannot be read, the shell's status
  // is reported.
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
 * Kills a command's remaining processes. If this takes longer than `killWaitMs`, it continues in the
 * background.
 * @returns false if processes may still be running or their pod is gone
 */
async function killRemaining(
  worker: ExecContext,
  sandboxId: string,
  processes: CommandProcesses,
): Promise<boolean> {
  const change = worker.notifications.next('sandbox', sandboxId, killWaitMs)
  const isEnded = await withTimeout(killWaitMs, killOrphans(worker, processes), () => false)
  // A sandbox's row is updated before its pod is deleted, or soon after its pod died.
  if (!isEnded) await change
  return isEnded
}

/**
 * Records a command's exit in the metrics, the log and the command's row.
 * @returns the exit status in the row, if another process assumed that this worker was lost and stored a
 *   different one
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
