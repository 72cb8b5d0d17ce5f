/**
 * Types for declaring the route of each endpoint and the schemas of its request and response. A schema limits
 * the length of a string before any check that takes more than linear time (test/hostile/texts.test.ts).
 */
import * as z from 'zod'
import type { ErrorCode } from './errors.ts'
import { whole } from './texts.ts'

export type Credential = 'none' | 'token' | 'key'
/**
 * The rate-limit bucket from which a request takes a token. There is one bucket per account, or one per
 * client address for unauthenticated requests. A login also takes a token from the bucket of its email
 * address (`login_account`).
 *
 * Each API process has its own `reads` and `changes` buckets, so these buckets do not need Redis.
 */
export type Bucket =
  | 'sandbox_ops'
  | 'sandbox_lifecycle'
  | 'connections'
  | 'signup'
  | 'login'
  | 'login_account'
  | 'mcp'
  | 'reads'
  | 'changes'

export type Scope = 'full' | 'run'

/**
 * Whether a client can safely retry a request that received no response.
 * - `yes`: always.
 * - `gone`: always. If the retry gets 404, the first attempt succeeded.
 * - `keyed`: only if the request has an `Idempotency-Key`.
 * - `plain`: only without a condition (`If-Match`, `overwrite=false`), because the first attempt may have
 *   changed whether the condition holds.
 * - `no`: never.
 */
type Repeat = 'yes' | 'gone' | 'keyed' | 'plain' | 'no'

/** A sample request. In generated samples, shell variables replace the ids in the path. */
interface Example {
  params?: Readonly<Record<string, string>>
  query?: Readonly<Record<string, string>>
  headers?: Readonly<Record<string, string>>
  body?: unknown
  /** Name of a file whose content is the request body. */
  file?: string
  /** The equivalent `sandlot` command, if there is one. */
  client?: string
}

interface Declared {
  summary: string
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  path: `/${string}`
  repeat?: Repeat
  example: Example
  credential: Credential
  scope?: Scope
  bucket: Bucket
  /** Status of a successful response. The default is 200. */
  status?: 101 | 201 | 204
  params?: z.ZodObject
  query?: z.ZodObject
  body?: z.ZodType
  /** Maximum size of the uncompressed JSON body. The default is `limits.usualBodyBytes`. */
  bodyBytes?: number
  /** A sentence that names an alternative for larger bodies. It is appended to the error `body_too_large`. */
  forLargerBody?: string
  /** Schema of the request headers that the route reads, with lower-case names. */
  headers?: z.ZodObject
  reply?: z.ZodType
  /** Whether the request body is a stream of bytes of any length instead of JSON. */
  rawBody?: true
  /** Media type of a response that is not JSON, or `websocket`. */
  rawReply?: 'application/octet-stream' | 'text/event-stream' | 'text/html' | 'websocket'
  /** Alternative media type of the response, used if the request's `Accept` header prefers it to JSON. */
  alsoReply?: 'text/event-stream'
  /** A second success status, such as 202 if processing continues in the background. */
  alsoStatus?: 202
  /** Whether the response has status 200 if the resource already exists. */
  alsoFound?: true
  /** Whether the response with the status `alsoStatus` has no body. */
  alsoEmpty?: true
  /**
   * Descriptions, by status, of errors whose body follows another protocol instead of being a problem
   * document.
   */
  refusals?: Readonly<Record<number, string>>
  /** Error codes of this route, in addition to the codes shared by all routes (api/http/responses.ts). */
  errors?: readonly ErrorCode[]
}

/**
 * Each route that accepts API keys must declare a scope, so that no route is open to `run` keys by oversight.
 */
type WithScope = { credential: 'key'; scope: Scope } | { credential: Exclude<Credential, 'key'> }

/** Every method except GET must declare `repeat`, so that no request is retried by oversight. */
type WithRepeat = { method: 'GET' } | { method: Exclude<Declared['method'], 'GET'>; repeat: Repeat }

export type Endpoint = Omit<Declared, 'status' | 'repeat' | 'errors'> & {
  name: string
  status: 101 | 200 | 201 | 204
  repeat: Repeat
  errors: readonly ErrorCode[]
}

export const family = <const All extends Record<string, Declared & WithScope & WithRepeat>>(all: All) =>
  Object.fromEntries<unknown>(
    Object.entries(all).map(([name, declared]) => [
      name,
      { status: 200, repeat: 'yes', errors: [], ...declared, name },
    ]),
  ) as { [Name in keyof All]: All[Name] & Pick<Endpoint, 'status' | 'repeat' | 'errors'> & { name: Name } }

/** Credential, scope and rate-limit bucket of routes that read the account's data. */
export const reading = { credential: 'key', scope: 'run', bucket: 'reads' } as const
/** Credential, scope and rate-limit bucket of routes that change the account's allowlist or secrets. */
export const changing = { credential: 'key', scope: 'full', bucket: 'changes' } as const

export type Input<T> = T extends z.ZodType ? z.output<T> : undefined
export type ClientInput<T> = T extends z.ZodType ? z.input<T> : undefined

/** A timestamp in responses, as returned by `toISOString`. */
export const Time = z.iso.datetime({ precision: 3 }).describe('An RFC 3339 timestamp in UTC')

/**
 * A timestamp in requests, limited to years that PostgreSQL and RFC 3339 can represent in every time zone.
 */
export const Moment = z.iso
  .datetime({ offset: true })
  .regex(/:\d\d:/, 'must contain seconds')
  .regex(/^([2-8]|9(?!999))/, 'must be in the years 2000 to 9998')
  .max(128)
  .describe('An RFC 3339 timestamp in the years 2000 to 9998')

const idPattern = /^[a-z]+_[0-9a-z]{26}$/
export const Id = z.string().regex(idPattern)

export const ById = z.object({ id: Id })

export const idempotencyKey = (description: string) =>
  z
    .string()
    .regex(/^[\x21-\x7e]{1,255}$/, 'must be 1 to 255 printable ASCII characters')
    .optional()
    .describe(description)

export const Switch = z.enum(['true', 'false']).optional()

export const cursorOf = (pattern: RegExp) =>
  z
    .string()
    .regex(pattern, 'must be the next_cursor of the previous page')
    .optional()
    .describe('`next_cursor` of the previous page')

export const Page = z.strictObject({
  limit: whole(1, 100).default(20),
  cursor: cursorOf(idPattern),
})

export const listOf = <T extends z.ZodType>(item: T) =>
  z.object({ data: z.array(item), next_cursor: z.string().nullable() })

export const ProblemDetails = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    code: z.string(),
    request_id: z.string(),
    errors: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
  })
  .loose()
  .meta({ id: 'Problem', description: 'RFC 9457 problem details' })
