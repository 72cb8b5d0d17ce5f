/** An error for clients: a code, and a detail with the next step. */
import { type ErrorCode, errors } from '../contract/errors.ts'

export interface ProblemExtras {
  /** For `Retry-After`, rounded up to whole seconds. */
  retryAfterSeconds?: number
  /** Additional members of the problem document. */
  members?: Record<string, unknown>
  cause?: unknown
}

export class Problem extends Error {
  override name = 'Problem'
  readonly code: ErrorCode
  readonly retryAfterSeconds: number | undefined
  readonly members: Record<string, unknown>

  constructor(code: ErrorCode, detail: string, extras: ProblemExtras = {}) {
    super(detail, { cause: extras.cause })
    this.code = code
    this.retryAfterSeconds = extras.retryAfterSeconds
    this.members = extras.members ?? {}
  }

  get status(): number {
    return errors[this.code].status
  }
}

/** Seconds until a client should retry while a part of the service is unavailable. */
const retrySeconds = 2

export const unavailable = (detail: string, cause?: unknown, members: Record<string, unknown> = {}) =>
  new Problem('unavailable', detail, { retryAfterSeconds: retrySeconds, cause, members })

/**
 * Whether an error of a database or queue client means that the server is unavailable, rather than that it refused the
 * request. Neither client has one class for it.
 */
export function meansAway(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (at instanceof AggregateError) return at.errors.some(meansAway)
    const { code } = at as { code?: unknown }
    if (typeof code === 'string' && awayCodes.test(code)) return true
    if (at.name === 'MaxRetriesPerRequestError' || awayWords.test(at.message)) return true
    if (at.name === 'ReplyError' && !faultsOfOurs.test(at.message)) return true
  }
  return false
}

// Codes of sockets; PostgreSQL's classes 08 (connection, except a protocol violation, which is our fault), 28 (its password
// is another, or its role may not log in), 53 (resources) and 57 (operator), a database that is not there (3D000), a lock
// that did not come, a transaction that lost to another, a primary that was demoted and only reads (25006).
const awayCodes =
  /^(ECONN|ENOENT|EPIPE|ETIMEDOUT|EHOST|ENET|ENOTFOUND|EAI_AGAIN|08(?!P01)|28|53|57|3D000|55P03|40P01|40001|25006)/
// pg, pg-pool and ioredis have only messages. So has a Redis that has too many clients.
const awayWords =
  /Connection (is closed|terminated|ended)|isn't writeable|is not queryable|Command timed out|timeout exceeded|Query read timeout|^ERR max number of clients/
// Every other error reply of Redis tells its state: loading, a replica, full, its disk full, its password another.
const faultsOfOurs = /^(ERR|WRONGTYPE|NOSCRIPT)\b/
