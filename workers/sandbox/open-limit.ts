import { OpenCounts } from '../../shared/lib/open-counts.ts'
import { Problem } from '../../shared/platform/problem.ts'

/**
 * Limits how many connections of one kind a sandbox has on this worker. The returned function counts a
 * connection, and returns a function that releases it.
 * @param detail the message of the error `rate_limited`, which the function throws at the limit
 */
export function limitOpen(max: number, detail: string): (sandboxId: string) => () => void {
  const open = new OpenCounts()
  return (sandboxId) => {
    if (open.of(sandboxId) >= max) throw new Problem('rate_limited', detail, { retryAfterSeconds: 1 })
    return open.begin(sandboxId)
  }
}
