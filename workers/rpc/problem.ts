/** Turns failures into answers for the API. */

import { isOutage, Problem, unavailable } from '../../shared/platform/problem.ts'
import { type CallProblem, execElsewhere } from '../../shared/rpc/calls.ts'

/** The command of this Idempotency-Key belongs to another worker, which the API calls then. No client sees this error. */
export class ExecElsewhere extends Error {
  readonly code = execElsewhere
  readonly known: { id: string; workerId: string }

  constructor(known: { id: string; workerId: string }) {
    super('this command is another worker’s')
    this.known = known
  }
}

/** Returns status and body of the answer. Internal errors are answered without their message. */
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

/** Whether it is an internal error, which is logged. */
export const isFault = (error: unknown): boolean =>
  !(error instanceof Problem || error instanceof ExecElsewhere || isOutage(error))

function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error
  if (isOutage(error)) return unavailable('A part of the service is away. Try again.')
  return new Problem('internal_error', 'Something went wrong in a worker.')
}
