/**
 * Shows the /readyz response of one process, including the body of a 503 response, which `kubectl get --raw`
 * omits.
 */
import * as z from 'zod'
import { type Report, showColumns } from './report.ts'

const Readiness = z.object({
  status: z.string(),
  parts: z.record(z.string(), z.string()),
  /**
   * Number of commands that are running or whose exit status is undelivered. Only workers report this number.
   */
  execs: z.number().optional(),
})

/**
 * @param address base URL of the process's internal port
 * @throws a user-facing error if the process does not respond
 */
export async function showReadiness(address: string): Promise<Report> {
  const response = await fetch(`${address}/readyz`, { signal: AbortSignal.timeout(10_000) }).catch(
    (error: Error) => {
      const reason = error.cause instanceof Error ? error.cause.message : error.message
      throw new Error(
        `Nothing is responding at ${address} (${reason}). Check INTERNAL_HOST and INTERNAL_PORT.`,
      )
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
