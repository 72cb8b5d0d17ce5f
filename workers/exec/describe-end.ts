/** How a command ended, as its client is told. */
import { constants } from 'node:os'
import type { ExecEnd } from '../../shared/contract/exec.ts'
import { findSandbox } from '../../shared/data/sandboxes.ts'
import type { CommandEnd } from '../shell/slot.ts'
import { type Command, type Ending, unknownEnd } from './command.ts'
import type { ExecContext } from './context.ts'

/** How long after its processes a pod's death may become known, in milliseconds. */
const deathMs = 3_000

export async function describeEnd(worker: ExecContext, command: Command, end: CommandEnd): Promise<Ending> {
  const { sandboxId } = command.facts
  // A sandbox that ends takes its commands with it, so its end is theirs, whatever status they left. While PostgreSQL
  // is away, that status is all there is to know.
  const look = () => findSandbox(worker.db, sandboxId).catch(() => undefined)
  let sandbox = end.kind === 'lost' || end.code > 128 ? await look() : undefined
  if (end.kind === 'exited' && end.withShell && !command.isBeingEnded && !sandbox?.destroyed_at) {
    await worker.notifications.next('sandbox', sandboxId, deathMs)
    sandbox = await look()
  }
  if (sandbox?.destroyed_at) return unknownEnd('killed', sandbox.destroy_reason ?? null)
  if (end.kind === 'lost') return unknownEnd('lost', end.why)
  const signal = signalOf(end.code)
  const remarks = [
    ...(end.inRoot ? ['the command ran in /, because /workspace could not be entered'] : []),
    ...(end.isCut ? ['the end of its stderr did not come: there may be more of it'] : []),
  ]
  const reason = remarks.length > 0 ? remarks.join('; ') : null
  return { status: signal ? 'signaled' : 'exited', exit_code: end.code, signal, reason }
}

/**
 * A shell reports the death of its command by signal n as 128 + n, and so it reports an exit with that status. Every
 * such status is taken for a signal.
 */
function signalOf(code: number): string | null {
  const found = Object.entries(constants.signals).find(([, value]) => value === code - 128)
  return found?.[0] ?? null
}

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
