/** The exit status of a command, as its client sees it. */
import type { ExecEnd } from '../../shared/contract/exec.ts'
import { findSandbox } from '../../shared/data/sandboxes.ts'
import { withTimeout } from '../../shared/lib/timeout.ts'
import { signalOf } from '../shell/exit-code.ts'
import type { CommandEnd, CommandProcesses } from '../shell/slot.ts'
import { type Command, type Ending, unknownEnd } from './command.ts'
import type { ExecContext } from './context.ts'
import { endLeftovers } from './orphans.ts'

/** Milliseconds that the answer waits for the end of processes whose exit status is lost, or for news of their pod. */
const endingMs = 3_000

/**
 * Describes how a command ended. If its exit status is lost, what still runs of it is ended first.
 * @param processes the ones to end in that case
 */
export async function describeEnd(
  worker: ExecContext,
  command: Command,
  end: CommandEnd,
  processes: CommandProcesses,
): Promise<Ending> {
  const { sandboxId } = command.facts
  const isEnded = end.kind === 'exited' || (await endBeforeAnswer(worker, sandboxId, processes))
  // A sandbox that ends takes its commands with it, so its end is theirs, whatever status they left. While PostgreSQL
  // is away, that status is all there is to know.
  const sandbox = end.kind === 'lost' || end.code > 128 ? await lookUp(worker, sandboxId) : undefined
  if (sandbox?.destroyed_at) return unknownEnd('killed', sandbox.destroy_reason ?? null)
  if (end.kind === 'lost')
    return unknownEnd('lost', isEnded ? end.why : `${end.why}; it may still be running`)
  const signal = signalOf(end.code)
  const remarks = [
    ...(end.inRoot ? ['the command ran in /, because /workspace could not be entered'] : []),
    ...(end.isCut ? ['the end of its stderr did not come: there may be more of it'] : []),
  ]
  const reason = remarks.length > 0 ? remarks.join('; ') : null
  return { status: signal ? 'signaled' : 'exited', exit_code: end.code, signal, reason }
}

/**
 * Ends the processes, for a bounded time; this continues in the background if they cannot be reached. A pod that died
 * cannot be reached either, but then the row of its sandbox soon says so.
 */
async function endBeforeAnswer(
  worker: ExecContext,
  sandboxId: string,
  processes: CommandProcesses,
): Promise<boolean> {
  const until = performance.now() + endingMs
  const news = worker.notifications.next('sandbox', sandboxId, endingMs)
  const ending = endLeftovers(worker, processes)
  // Also if they have ended: the shell may have been killed because the sandbox is being destroyed.
  await news
  if ((await lookUp(worker, sandboxId))?.destroyed_at) return false
  return await withTimeout(until - performance.now(), ending, () => false)
}

const lookUp = (worker: ExecContext, sandboxId: string) =>
  findSandbox(worker.db, sandboxId).catch(() => undefined)

/** @returns the end that stands in the row, when somebody who took this worker for lost wrote another one */
export function tellEnd(
  worker: ExecContext,
  requestId: string,
  command: Command,
  end: ExecEnd,
): Promise<Ending | undefined> {
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
