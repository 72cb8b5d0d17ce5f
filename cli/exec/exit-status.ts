import { constants } from 'node:os'
import type { ExecOutcome, StartError } from '../../shared/contract/exec.ts'
import { clientDisconnected } from '../../shared/contract/exec-events.ts'
import { destroyReasonOf } from '../core/destroy-reasons.ts'
import { CliError, exitCodes } from '../core/errors.ts'
import type { Output } from '../core/output.ts'

export function noteExitStatus(ended: ExecOutcome, note: (text: string) => void): void {
  const { status, duration_ms, reason, start_error } = ended
  const ofSession = destroyReasonOf(ended)
  if (ofSession !== undefined) {
    note(`sandlot: the session has ended (${ofSession}), which killed the command.`)
    return
  }
  const why = reason ? `: ${reason}` : ''
  if (reason && (status === 'exited' || status === 'signaled')) note(`sandlot: ${reason}`)
  if (start_error) note(`sandlot: ${startErrors[start_error]}`)
  if (status === 'timed_out') note(`sandlot: timed out after ${Math.round(duration_ms)} ms`)
  if (status === 'lost')
    note(`sandlot: the command was lost${why}. It is unknown whether the command ran and how it exited.`)
  if (status !== 'killed') return
  const rule =
    reason === clientDisconnected
      ? " The client was disconnected for longer than the command's grace period (--grace)."
      : ''
  note(`sandlot: the command was killed${why}.${rule}`)
}

const startErrors: Record<StartError, string> = {
  not_found: 'the command did not run, because its program was not found in the session.',
  not_executable:
    'the command did not run, because its program is a directory or not executable. `chmod +x` makes a file executable.',
  no_such_directory: 'the command did not run, because its working directory (--cwd) cannot be entered.',
}

/** Reports the exit status of a command whose output has been printed. Returns the client's exit code. */
export function finish(ended: ExecOutcome, output: Output): number {
  if (output.json) output.result(ended, '')
  else noteExitStatus(ended, output.note)
  return exitCodeOf(ended)
}

export function describeExit(ended: ExecOutcome): string {
  const { status, exit_code, signal, reason } = ended
  const ofSession = destroyReasonOf(ended)
  if (ofSession !== undefined) return `killed with its session (${ofSession})`
  if (status === 'running') return 'still running'
  const by = { exited: ` ${exit_code}`, signaled: ` ${signal}` }[status as string] ?? ''
  return `${status.replace('_', ' ')}${by}${reason ? `: ${reason}` : ''}`
}

/** True if the error means that the session has ended. The results of its commands are still available. */
export const isGone = (error: unknown): boolean =>
  error instanceof CliError && error.code === 'sandbox_destroyed'

export function exitCodeOf({ status, exit_code, signal }: ExecOutcome): number {
  if (status === 'timed_out') return exitCodes.execTimedOut
  if (status === 'exited' && exit_code !== null) return exit_code
  const number = constants.signals[signal as NodeJS.Signals] as number | undefined
  if ((status === 'signaled' || status === 'killed') && number !== undefined) return 128 + number
  return exitCodes.execFailed
}
