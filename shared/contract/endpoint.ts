/**
 * The declaration of an endpoint: its route and the schemas of its request and reply. A schema limits the length of a
 * text before any check that takes more than linear time; a test sends the worst case to each field of each route.
 */
import * as z from 'zod'
import type { ErrorCode } from './errors.ts'
import { whole } from './texts.ts'

export type Credential = 'none' | 'token' | 'key'
/**
 * The token bucket of a request: per account, or per client address for a request without one. Each API process counts
 * `reads` and `changes` separately, so that they do not need Redis. A login also counts against its email address
 * (`login_account`).
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

/** `run` keys can use commands, files and sandboxes; `full` keys can also change the allowlist and secrets. */
export type Scope = 'full' | 'run'

/**
 * Whether a client may repeat a request that got no response: `yes`; `gone`: yes, and a 404 then means that the first
 * attempt succeeded; `keyed`: with an `Idempotency-Key`; `plain`: without a condition (`If-Match`, `overwrite=false`),
 * because the first attempt may have changed its result; `no`.
 */
export type Repeat = 'yes' | 'gone' | 'keyed' | 'plain' | 'no'

/** A sample request. Ids in its path become shell variables. */
export interface Example {
  params?: Readonly<Record<string, string>>
  query?: Readonly<Record<string, string>>
  headers?: Readonly<Record<string, string>>
  body?: unknown
  /** The file whose bytes are the body. */
  file?: string
  /** The equivalent command of the client, if there is one. */
  client?: string
}

interface Declared {
  summary: string
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** `:name` marks a parameter. */
  path: `/${string}`
  repeat?: Repeat
  example: Example
  credential: Credential
  /** The minimum scope of the API key. */
  scope?: Scope
  bucket: Bucket
  /** The status of a successful reply, 200 by default. */
  status?: 101 | 201 | 204
  params?: z.ZodObject
  query?: z.ZodObject
  body?: z.ZodType
  /** Maximum bytes of the JSON body, uncompressed; `limits.usualBodyBytes` by default. */
  bodyBytes?: number
  /** The alternative to a larger body, as the last sentence of the error `body_too_large`. */
  forLargerBody?: string
  /** Request headers that the route reads, in lower case. */
  headers?: z.ZodObject
  reply?: z.ZodType
  /** The body is streamed bytes of any length, instead of JSON. */
  rawBody?: true
  /** The media type of a reply that is not JSON: streamed bytes or events. */
  rawReply?: 'application/octet-stream' | 'text/event-stream' | 'text/html' | 'websocket'
  /** The media type of the reply to a request whose `Accept` prefers it to JSON. */
  alsoReply?: 'text/event-stream'
  /** A second status of success, such as 202 for a create that continues in the background. */
  alsoStatus?: 202
  /** The reply with `alsoStatus` has no body. */
  alsoEmpty?: true
  /** Error statuses whose body is JSON of another protocol instead of a problem document, with their meaning. */
  refusals?: Readonly<Record<number, string>>
  /** The error codes specific to this route. api/http/responses.ts adds those that it shares with others. */
  errors: readonly ErrorCode[]
}

/** A route with API keys must declare a scope, so that none is open to `run` keys by oversight. */
type WithScope = { credential: 'key'; scope: Scope } | { credential: Exclude<Credential, 'key'> }

/** A GET may always be repeated. Other routes must declare it, so that none is repeated by oversight. */
type WithRepeat = { method: 'GET' } | { method: Exclude<Declared['method'], 'GET'>; repeat: Repeat }

export type Endpoint = Omit<Declared, 'status' | 'repeat'> & {
  name: string
  status: 101 | 200 | 201 | 204
  repeat: Repeat
}

/** Adds names and defaults to the endpoints of one file. The API description keeps their order. */
export const family = <const All extends Record<string, Declared & WithScope & WithRepeat>>(all: All) =>
  Object.fromEntries<unknown>(
    Object.entries(all).map(([name, declared]) => [name, { status: 200, repeat: 'yes', ...declared, name }]),
  ) as { [Name in keyof All]: All[Name] & Pick<Endpoint, 'status' | 'repeat'> & { name: Name } }

export type Input<T> = T extends z.ZodType ? z.output<T> : undefined
/** Input before parsing, in which fields with a default are optional. */
export type ClientInput<T> = T extends z.ZodType ? z.input<T> : undefined

/** RFC 3339 UTC with milliseconds, as JavaScript's `toISOString` writes it. */
export const Time = z.iso.datetime({ precision: 3 }).meta({ description: 'RFC 3339, UTC' })

/** A time sent by a client. RFC 3339 and PostgreSQL can both represent these years in any time zone. */
export const Moment = z.iso
  .datetime({ offset: true })
  .regex(/:\d\d:/, 'must have seconds')
  .regex(/^([2-8]|9(?!999))/, 'must be in the years 2000 to 9998')
  .meta({ description: 'RFC 3339, in the years 2000 to 9998' })

/** A prefix for the kind of object, and a ULID. */
const idPattern = /^[a-z]+_[0-9a-z]{26}$/
export const Id = z.string().regex(idPattern)

export const ById = z.object({ id: Id })

export const idempotencyKey = (description: string) =>
  z
    .string()
    .regex(/^[\x21-\x7e]{1,255}$/, 'must be 1 to 255 printable ASCII characters')
    .optional()
    .meta({ description })

/** A boolean query parameter. */
export const Switch = z.enum(['true', 'false']).optional()

export const cursorOf = (pattern: RegExp) =>
  z.string().regex(pattern, 'must be the next_cursor of the previous page').optional().meta({
    description: '`next_cursor` of the previous page',
  })

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
