/** Reads /readyz of one process, for an operator: `kubectl get --raw` omits the body of a 503. */
import * as z from 'zod'
import { type Report, showColumns } from './report.ts'

const Readiness = z.object({
  status: z.string(),
  /** By component, `ok` or the reason why it is not. */
  parts: z.record(z.string(), z.string()),
  /** The number of commands that a worker still serves. */
  execs: z.number().optional(),
})

const answerMs = 10_000

/**
 * @param address the base URL of the internal port
 * @returns the exit code 1 when the process is not ready
 * @throws with a message for the terminal when it does not answer
 */
export async function showReadiness(address: string): Promise<Report> {
  const response = await fetch(`${address}/readyz`, { signal: AbortSignal.timeout(answerMs) }).catch(
    (error: Error) => {
      const reason = error.cause instanceof Error ? error.cause.message : error.message
      throw new Error(`No process answers at ${address} (${reason}): set INTERNAL_HOST and INTERNAL_PORT.`)
    },
  )
  const readiness = Readiness.parse(await response.json())
  const { status, parts, execs } = readiness
  const rows = [
    ['COMPONENT', 'STATE'],
    ...Object.entries(parts),
    ...(execs === undefined ? [] : [['commands', `${execs} served`]]),
  ]
  return {
    value: readiness,
    text: [status, '', ...showColumns(rows)].join('\n'),
    exitCode: response.ok ? 0 : 1,
  }
}
