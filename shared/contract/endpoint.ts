/**
 * What an endpoint is: its route, with the schemas of its request and reply. In a schema, a bound on length
 * comes before any check that takes more than linear time; a test sends the worst to each field of each route.
 */
import * as z from 'zod'
import type { ErrorCode } from './errors.ts'
import { whole } from './texts.ts'

export type Credential = 'none' | 'token' | 'key'
/**
 * The bucket that a request counts against: per account, or per address where there is no account. Each API process
 * counts `reads` and `changes` by itself, so that they do not need Redis. A login also counts against its e-mail
 * address (`login_account`).
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

/** `run` keys run commands and work with files and sandboxes; `full` ones also change what binds those. */
export type Scope = 'full' | 'run'

/**
 * Whether a client may repeat a request that got no answer: `yes`; `gone`: yes, and a 404 then says that the first one did
 * it; `keyed`: with an `Idempotency-Key`; `plain`: without a condition (`If-Match`, `overwrite=false`), because the first
 * one may have changed what it is about; `no`.
 */
export type Repeat = 'yes' | 'gone' | 'keyed' | 'plain' | 'no'

/** A request as people send it. Identifiers in the path stand for themselves. */
export interface Example {
  params?: Readonly<Record<string, string>>
  query?: Readonly<Record<string, string>>
  headers?: Readonly<Record<string, string>>
  body?: unknown
  /** The file whose bytes are the body. */
  file?: string
  /** The client's line that does the same, where there is one. */
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
  /** The least scope of key that the route takes. */
  scope?: Scope
  bucket: Bucket
  /** The status of success, by default 200. */
  status?: 101 | 201 | 204
  params?: z.ZodObject
  query?: z.ZodObject
  body?: z.ZodType
  /** Bytes of the largest JSON body, uncompressed; by default `limits.usualBodyBytes`. */
  bodyBytes?: number
  /** What a client can do instead of sending a larger body: the end of that refusal. */
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
  /** A second success, such as 202 for a create that goes on in the background. */
  alsoStatus?: 202
  /** Whether that has no body. */
  alsoEmpty?: true
  /** Statuses of refusals that are replies in JSON, as another protocol wants it, and what they mean. */
  refusals?: Readonly<Record<number, string>>
  /** The error codes of only this route. Those that any route may answer are added elsewhere. */
  errors: readonly ErrorCode[]
}

/** Each route that takes a key must name a scope, so none is open to `run` keys by oversight. */
type WithScope = { credential: 'key'; scope: Scope } | { credential: Exclude<Credential, 'key'> }

/** A GET may always be repeated. Every other route must say, so none is repeated by oversight. */
type WithRepeat = { method: 'GET' } | { method: Exclude<Declared['method'], 'GET'>; repeat: Repeat }

export type Endpoint = Omit<Declared, 'status' | 'repeat'> & {
  name: string
  status: 101 | 200 | 201 | 204
  repeat: Repeat
}

/** The endpoints of one file, each with its name. They keep their order in the API description. */
export const family = <const All extends Record<string, Declared & WithScope & WithRepeat>>(all: All) =>
  Object.fromEntries<unknown>(
    Object.entries(all).map(([name, declared]) => [name, { status: 200, repeat: 'yes', ...declared, name }]),
  ) as { [Name in keyof All]: All[Name] & Pick<Endpoint, 'status' | 'repeat'> & { name: Name } }

export type Input<T> = T extends z.ZodType ? z.output<T> : undefined
/** What a client sends: fields with a default are optional. */
export type ClientInput<T> = T extends z.ZodType ? z.input<T> : undefined

/** RFC 3339 UTC with milliseconds, as JavaScript's `toISOString` writes it. */
export const Time = z.iso.datetime({ precision: 3 }).meta({ description: 'RFC 3339, UTC' })

/** A point in time that a client sends. Both RFC 3339 and PostgreSQL can write these years, in any time zone. */
export const Moment = z.iso
  .datetime({ offset: true })
  .regex(/:\d\d:/, 'must have seconds')
  .regex(/^([2-8]|9(?!999))/, 'must be in the years 2000 to 9998')
  .meta({ description: 'RFC 3339, in the years 2000 to 9998' })

/** The id of an account, a key, a sandbox: a prefix and a ULID. */
const idPattern = /^[a-z]+_[0-9a-z]{26}$/
export const Id = z.string().regex(idPattern)

export const ById = z.object({ id: Id })

/** @param description what the same key does */
export const idempotencyKey = (description: string) =>
  z
    .string()
    .regex(/^[\x21-\x7e]{1,255}$/, 'must be 1 to 255 printable ASCII characters')
    .optional()
    .meta({ description })

/** A query parameter that is on or off. */
export const Switch = z.enum(['true', 'false']).optional()

export const cursorOf = (pattern: RegExp) =>
  z.string().regex(pattern, 'must be the next_cursor of the page before').optional().meta({
    description: '`next_cursor` of the page before',
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
