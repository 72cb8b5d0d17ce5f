import { type ErrorCode, errors } from '../contract/errors.ts'

interface ProblemExtras {
  /** Value of the `Retry-After` header, rounded up to whole seconds. */
  retryAfterSeconds?: number
  members?: Record<string, unknown>
  cause?: unknown
  /** Cause of the error, reported in metrics but not to clients. */
  reason?: 'no_worker' | 'cluster_unreachable' | 'cluster_misconfigured' | undefined
}

/** An error that a client receives. It has no stack trace, because capturing one costs as much as a log line. */
export class Problem extends Error {
  override name = 'Problem'
  readonly code: ErrorCode
  readonly retryAfterSeconds: number | undefined
  readonly members: Record<string, unknown>
  readonly reason: string

  constructor(code: ErrorCode, detail: string, extras: ProblemExtras = {}) {
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(detail, { cause: extras.cause })
    Error.stackTraceLimit = stackTraceLimit
    this.code = code
    this.retryAfterSeconds = extras.retryAfterSeconds
    this.members = extras.members ?? {}
    this.reason = extras.reason ?? code
  }

  get status(): number {
    return errors[this.code].status
  }
}

const retrySeconds = 2

export const unavailable = (detail: string, cause?: unknown, members: Record<string, unknown> = {}) =>
  new Problem('unavailable', detail, { retryAfterSeconds: retrySeconds, cause, members })

/** Returns the error for requests to create a sandbox while no worker can create one. */
export const cannotCreate = (reason: NonNullable<ProblemExtras['reason']>, detail: string) =>
  new Problem('unavailable', detail, { retryAfterSeconds: retrySeconds, reason })

/**
 * Returns whether an error means that PostgreSQL or Redis is unavailable. Neither client library has an error
 * class for outages.
 */
export function isOutage(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (at instanceof AggregateError) return at.errors.some(isOutage)
    const { code } = at as { code?: unknown }
    if (typeof code === 'string' && outageCodes.test(code)) return true
    if (at.name === 'MaxRetriesPerRequestError' || outageMessages.test(at.message)) return true
    if (at.name === 'ReplyError' && !requestErrors.test(at.message)) return true
  }
  return false
}

// Socket errors, and PostgreSQL's codes: 08 connection, 28 login, 53 resources, 57 operator, 3D000 missing
// database, 55P03 lock timeout, 40P01 deadlock, 40001 serialization failure, 25006 read-only (demoted
// primary). 08P01 is a protocol violation, which is a bug.
const outageCodes =
  /^(ECONN|ENOENT|EPIPE|ETIMEDOUT|EHOST|ENET|ENOTFOUND|EAI_AGAIN|08(?!P01)|28|53|57|3D000|55P03|40P01|40001|25006)/
// pg, pg-pool and ioredis report these errors without a code, as does a Redis server with too many clients.
const outageMessages =
  /Connection (is closed|terminated|ended)|isn't writeable|is not queryable|Command timed out|timeout exceeded|Query read timeout|^ERR max number of clients/
// Every other Redis error concerns the server's state: loading, a replica, out of memory or disk, a new
// password.
const requestErrors = /^(ERR|WRONGTYPE|NOSCRIPT)\b/
