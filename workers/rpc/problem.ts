import { isOutage, Problem, unavailable } from '../../shared/platform/problem.ts'
import { type CallProblem, execElsewhere } from '../../shared/rpc/calls.ts'

/**
 * Thrown if a command with the same Idempotency-Key is running on a different worker. The API then calls that
 * worker.
 */
export class ExecElsewhere extends Error {
  readonly code = execElsewhere
  readonly known: { id: string; workerId: string }

  constructor(known: { id: string; workerId: string }) {
    super('this command runs on another worker')
    this.known = known
  }
}

/** Converts an error to an error response. Omits the message of an internal error. */
export function problemOf(error: unknown): { status: number; body: CallProblem } {
  if (error instanceof ExecElsewhere) {
    const members = { exec_id: error.known.id, worker_id: error.known.workerId }
    return { status: 409, body: { code: execElsewhere, detail: error.message, members } }
  }
  const problem = asProblem(error)
  const body: CallProblem = { code: problem.code, detail: problem.message, members: problem.members }
  if (problem.retryAfterSeconds !== undefined) body.retryAfterSeconds = problem.retryAfterSeconds
  return { status: problem.status, body }
}

export const isFault = (error: unknown): boolean =>
  !(error instanceof Problem || error instanceof ExecElsewhere || isOutage(error))

function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error
  if (isOutage(error)) return unavailable('The service is temporarily unavailable. Try again.')
  return new Problem('internal_error', 'The request failed because of an internal error.')
}
