import { Problem } from '../../shared/platform/problem.ts'

/**
 * Limits how many connections of one kind a sandbox has on this worker. The returned function counts a
 * connection, and returns a function that releases it.
 * @param detail the message of the error `rate_limited`, which the function throws at the limit
 */
export function limitOpen(max: number, detail: string): (sandboxId: string) => () => void {
  const open = new Map<string, number>()
  return (sandboxId) => {
    const count = open.get(sandboxId) ?? 0
    if (count >= max) throw new Problem('rate_limited', detail, { retryAfterSeconds: 1 })
    open.set(sandboxId, count + 1)
    return () => {
      const left = open.get(sandboxId)! - 1
      if (left > 0) open.set(sandboxId, left)
      else open.delete(sandboxId)
    }
  }
}
