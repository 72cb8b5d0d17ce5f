/** What the service's own terms mean, in words. */
import type { ExecSummary } from '../../shared/contract/exec.ts'
import type { DestroyReason, Sandbox } from '../../shared/contract/sandboxes.ts'
import { oneLine } from './text.ts'
import { showDuration } from './time.ts'

const reasons: Record<DestroyReason, string> = {
  requested: 'it was destroyed on request',
  expired: 'its time was up',
  start_failed: 'it could not be started',
  suspended: 'the account was suspended',
  pod_failed: 'its machine failed',
}

/** Why a session ended. */
export function whyEnded({ destroy_reason, destroy_detail }: Sandbox): string {
  const why = destroy_reason === null ? 'no reason is known' : (reasons[destroy_reason] ?? destroy_reason)
  return destroy_detail === null ? why : `${why} (${oneLine(destroy_detail)})`
}

type ExecOutcome = Pick<ExecSummary, 'status' | 'exit_code' | 'signal' | 'reason'>

/** A sign and a word for the state of a command, so that neither depends on colour. */
export function standing({ status, exit_code, signal, reason }: ExecOutcome): {
  sign: string
  words: string
} {
  if (status === 'running') return { sign: '▸', words: 'running' }
  if (status === 'exited') return { sign: exit_code === 0 ? '✓' : '✗', words: `exit ${exit_code}` }
  if (status === 'timed_out') return { sign: '✗', words: 'timed out' }
  if (status === 'signaled') return { sign: '✗', words: signal ?? 'signal' }
  const why = reason === null ? '' : `: ${oneLine(reason)}`
  return { sign: '✗', words: `${status}${why}` }
}

export const standingLine = (command: ExecOutcome & Pick<ExecSummary, 'duration_ms'>): string => {
  const { sign, words } = standing(command)
  return `${sign} ${words}${command.status === 'running' ? '' : ` after ${showDuration(command.duration_ms)}`}`
}
