/** Shows the /readyz response of one process. `kubectl get --raw` would omit the body of a 503 response. */
import * as z from 'zod'
import { type Report, showColumns } from './report.ts'

const Readiness = z.object({
  status: z.string(),
  parts: z.record(z.string(), z.string()),
  /** Commands that are running or whose exit status has not been delivered. Only workers report them. */
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
