/**
 * How many requests of one account run in this process at a time. Streams, terminals and waits last long, and each
 * holds a connection here and one to a worker. A rate limit bounds only how many begin.
 */
import type { ServerResponse } from 'node:http'
import { Problem } from '../../shared/platform/problem.ts'
import { onceClosed } from '../../shared/platform/sockets.ts'

/** Far more requests than the sandboxes of an account need, and little for a process. */
const most = 1_000

export class RunningRequests {
  private readonly running = new Map<string, number>()

  /** Counts a request until its answer has ended. @throws {Problem} `rate_limited` when too many run */
  enter(accountId: string, response: ServerResponse): void {
    const count = this.running.get(accountId) ?? 0
    if (count >= most) throw tooMany()
    this.running.set(accountId, count + 1)
    onceClosed(response, () => {
      const left = this.running.get(accountId)! - 1
      if (left > 0) this.running.set(accountId, left)
      else this.running.delete(accountId)
    })
  }
}

const tooMany = () =>
  new Problem(
    'rate_limited',
    `This account has ${most} requests open here. Wait until one of them is over.`,
    { retryAfterSeconds: 1 },
  )
