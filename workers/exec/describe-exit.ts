/** The exit status of a command, as its client sees it. */
import type { ExecOutcome } from '../../shared/contract/exec.ts'
import { findSandbox, lockActive } from '../../shared/data/sandboxes.ts'
import { withTimeout } from '../../shared/lib/timeout.ts'
import { signalOf } from '../shell/exit-code.ts'
import type { CommandExit, CommandProcesses } from '../shell/slot.ts'
import { type Command, type ExitStatus, withoutExitCode } from './command.ts'
import type { ExecContext } from './context.ts'
import { killOrphans } from './orphans.ts'

/**
 * Milliseconds that the answer waits until processes whose exit status is lost have ended, or until the row of the
 * sandbox says that their pod died.
 */
const endingMs = 3_000

/**
 * Describes how a command ended. If its exit status is lost, what still runs of it is ended first.
 * @param processes the ones to end in that case
 */
export async function describeExit(
  worker: ExecContext,
  command: Command,
  end: CommandExit,
  processes: CommandProcesses,
): Promise<ExitStatus> {
  const { sandboxId, accountId } = command.facts
  const isEnded = end.kind === 'exited' || (await endBeforeAnswer(worker, sandboxId, processes))
  // Waits for a transaction that destroys the sandbox just now.
  if (end.kind === 'lost') await lockActive(worker.db, { id: sandboxId, accountId }).catch(() => false)
  // The end of a sandbox ends its commands, with any exit status. A row that cannot be read changes nothing.
  const mayBeDestroyed = end.kind === 'lost' || end.code > 128
  const sandbox = mayBeDestroyed ? await findSandbox(worker.db, sandboxId).catch(() => undefined) : undefined
  if (sandbox?.destroyed_at) return withoutExitCode('killed', sandbox.destroy_reason ?? null)
  if (end.kind === 'lost')
    return withoutExitCode('lost', isEnded ? end.why : `${end.why}; it may still be running`)
  const signal = signalOf(end.code)
  const remarks = [
    ...(end.inRoot ? ['the command ran in /, because /workspace could not be entered'] : []),
    ...(end.isCut ? ['the end of its stderr did not come: there may be more of it'] : []),
  ]
  const reason = remarks.length > 0 ? remarks.join('; ') : null
  return { status: signal ? 'signaled' : 'exited', exit_code: end.code, signal, reason }
}

/**
 * Ends the processes. After `endingMs` this continues in the background.
 * @returns false when they may still run, or their pod is gone
 */
async function endBeforeAnswer(
  worker: ExecContext,
  sandboxId: string,
  processes: CommandProcesses,
): Promise<boolean> {
  const news = worker.notifications.next('sandbox', sandboxId, endingMs)
  const isEnded = await withTimeout(endingMs, killOrphans(worker, processes), () => false)
  // A sandbox that is destroyed has its row written before its pod is deleted. A pod that died has it written soon after.
  if (!isEnded) await news
  return isEnded
}

/** @returns the exit status in the row, if a process that took this worker for lost wrote another one */
export function reportExit(
  worker: ExecContext,
  requestId: string,
  command: Command,
  end: ExecOutcome,
): Promise<ExitStatus | undefined> {
  worker.metrics.execs.observe({ status: end.status }, end.duration_ms / 1000)
  worker.log.info(
    {
      exec_id: command.id,
      request_id: requestId,
      sandbox_id: command.facts.sandboxId,
      account_id: command.facts.accountId,
      status: end.status,
      ms: Math.round(end.duration_ms),
    },
    'a command ended',
  )
  return worker.ends.write(end)
}
