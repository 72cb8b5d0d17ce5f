import { isOutage, Problem, unavailable } from '../../shared/platform/problem.ts'
import { type CallProblem, execElsewhere } from '../../shared/rpc/calls.ts'

/** The command with this Idempotency-Key runs on another worker, which the API calls next. */
export class ExecElsewhere extends Error {
  readonly code = execElsewhere
  readonly known: { id: string; workerId: string }

  constructor(known: { id: string; workerId: string }) {
    super('this command runs on another worker')
    this.known = known
  }
}

/** Returns status and body of the response, which omits the message of an internal error. */
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

/** Whether it is an internal error, which must be logged. */
export const isFault = (error: unknown): boolean =>
  !(error instanceof Problem || error instanceof ExecElsewhere || isOutage(error))

function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error
  if (isOutage(error)) return unavailable('A part of the service is unavailable. Try again.')
  return new Problem('internal_error', 'A worker failed to handle the request.')
}
