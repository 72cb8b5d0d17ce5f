import type { ExecSummary } from '../../shared/contract/exec.ts'
import type { Sandbox } from '../../shared/contract/sandboxes.ts'
import { describeDestroyReason, destroyReasonOf } from '../core/destroy-reasons.ts'
import { oneLine } from './text.ts'
import { showDuration } from './time.ts'

export function describeDestroyed(session: Sandbox): string {
  const why = describeDestroyReason(session)
  const { destroy_detail } = session
  return destroy_detail === null ? why : `${why} (${oneLine(destroy_detail)})`
}

type ExecOutcome = Pick<ExecSummary, 'status' | 'exit_code' | 'signal' | 'reason'>

/** Returns a symbol and text for a command's status, so that its meaning does not depend on color. */
export function describeStatus({ status, exit_code, signal, reason }: ExecOutcome) {
  if (status === 'running') return { sign: '▸', text: 'running' }
  if (status === 'exited') return { sign: exit_code === 0 ? '✓' : '✗', text: `exit ${exit_code}` }
  if (status === 'timed_out') return { sign: '✗', text: 'timed out' }
  if (status === 'signaled') return { sign: '✗', text: signal ?? 'signal' }
  const ofSession = destroyReasonOf({ status, reason })
  if (ofSession !== undefined) return { sign: '✗', text: `killed with its session: ${ofSession}` }
  const why = reason === null ? '' : `: ${oneLine(reason)}`
  return { sign: '✗', text: `${status}${why}` }
}

export const statusLine = (command: ExecOutcome & Pick<ExecSummary, 'duration_ms'>): string => {
  const { sign, text } = describeStatus(command)
  return `${sign} ${text}${command.status === 'running' ? '' : ` after ${showDuration(command.duration_ms)}`}`
}
