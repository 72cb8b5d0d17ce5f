/** Texts for the service's terms. */
import type { ExecSummary } from '../../shared/contract/exec.ts'
import type { Sandbox } from '../../shared/contract/sandboxes.ts'
import { describeDestroyReason, destroyReasonOf } from '../core/destroy-reasons.ts'
import { oneLine } from './text.ts'
import { showDuration } from './time.ts'

export function describeDestroyed(session: Sandbox): string {
  const [why, { destroy_detail }] = [describeDestroyReason(session), session]
  return destroy_detail === null ? why : `${why} (${oneLine(destroy_detail)})`
}

type ExecOutcome = Pick<ExecSummary, 'status' | 'exit_code' | 'signal' | 'reason'>

/** A sign and a text, so that neither depends on color. */
export function describeStatus({ status, exit_code, signal, reason }: ExecOutcome): {
  sign: string
  words: string
} {
  if (status === 'running') return { sign: '▸', words: 'running' }
  if (status === 'exited') return { sign: exit_code === 0 ? '✓' : '✗', words: `exit ${exit_code}` }
  if (status === 'timed_out') return { sign: '✗', words: 'timed out' }
  if (status === 'signaled') return { sign: '✗', words: signal ?? 'signal' }
  const ofSession = destroyReasonOf({ status, reason })
  if (ofSession !== undefined) return { sign: '✗', words: `killed with its session: ${ofSession}` }
  const why = reason === null ? '' : `: ${oneLine(reason)}`
  return { sign: '✗', words: `${status}${why}` }
}

export const statusLine = (command: ExecOutcome & Pick<ExecSummary, 'duration_ms'>): string => {
  const { sign, words } = describeStatus(command)
  return `${sign} ${words}${command.status === 'running' ? '' : ` after ${showDuration(command.duration_ms)}`}`
}
