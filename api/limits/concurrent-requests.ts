/**
 * How many requests of one account run in this process at a time. Streams, terminals and waits last, and
 * each holds a connection here and one to a worker: a bucket alone bounds how fast they come, not how many there are.
 */
import type { ServerResponse } from 'node:http'
import { Problem } from '../../shared/platform/problem.ts'

/** Far more than two sandboxes keep busy, and little of a process. */
const most = 1_000

export interface RunningRequests {
  /** Counts a request until its answer is over. @throws {Problem} `rate_limited` when too many run */
  enter(accountId: string, response: ServerResponse): void
}

export function countRequests(): RunningRequests {
  const running = new Map<string, number>()
  return {
    enter(accountId, response) {
      const count = running.get(accountId) ?? 0
      if (count >= most) throw tooMany()
      running.set(accountId, count + 1)
      response.once('close', () => {
        const left = running.get(accountId)! - 1
        if (left > 0) running.set(accountId, left)
        else running.delete(accountId)
      })
    },
  }
}

const tooMany = () =>
  new Problem(
    'rate_limited',
    `This account has ${most} requests open here. Wait until one of them is over.`,
    {
      retryAfterSeconds: 1,
    },
  )
