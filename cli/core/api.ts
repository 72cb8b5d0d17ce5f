import type { IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { input, output, ZodType } from 'zod'
import type { EndpointName, endpoints } from '../../shared/contract/index.ts'
import { parseJson } from '../../shared/contract/json.ts'
import { limits } from '../../shared/contract/limits.ts'
import { type Route, routes } from '../../shared/contract/routes.ts'
import { addStory, CliError, largeHint } from './errors.ts'
import {
  ConnectionError,
  type Exchange,
  exchange,
  type HttpAnswer,
  type OpenExchange,
  openExchange,
  readText,
} from './http.ts'
import { isProblem, problemToError } from './problem.ts'
import type { Settings } from './settings.ts'
import { setServiceClock } from './times.ts'
import { version } from './version.ts'

type Endpoints = typeof endpoints

/** Type of one part of a request. The part is optional if its schema accepts an empty object or undefined. */
type Part<Name extends EndpointName, Key extends 'params' | 'query' | 'body'> =
  Endpoints[Name] extends Record<Key, infer Schema extends ZodType>
    ? Record<never, never> extends Exclude<input<Schema>, undefined>
      ? { [K in Key]?: input<Schema> }
      : { [K in Key]: input<Schema> }
    : unknown

interface Common {
  token?: string
  headers?: Record<string, string>
  timeoutMs?: number
  /** Binary request body. Each retry iterates over it from the start. */
  bytes?: AsyncIterable<Uint8Array> | Iterable<Uint8Array>
}

export type Request<Name extends EndpointName> = Common &
  Part<Name, 'params'> &
  Part<Name, 'query'> &
  Part<Name, 'body'>

export type Reply<Name extends EndpointName> =
  Endpoints[Name] extends Record<'reply', infer Schema extends ZodType> ? output<Schema> : undefined

export type Api = ReturnType<typeof createApi>

/** Timeout for an ordinary request, including its retries. */
const requestTimeoutMs = 30_000
/** Timeout for a file search, longer than the service's own limit of 30 s. */
const searchTimeoutMs = 45_000
/** Timeout for a change to files, longer than the service's own limit of 60 s. */
const fileChangeTimeoutMs = 75_000
const timeouts: Partial<Record<EndpointName, number>> = {
  listFiles: searchTimeoutMs,
  globFiles: searchTimeoutMs,
  grepFiles: searchTimeoutMs,
  watchFiles: searchTimeoutMs,
  editFile: fileChangeTimeoutMs,
  moveFile: fileChangeTimeoutMs,
  removeFile: fileChangeTimeoutMs,
  makeDirectory: fileChangeTimeoutMs,
  changeFileMode: fileChangeTimeoutMs,
}
const slowMs = 3_000
/** A rate-limited request fails immediately if the Retry-After of its response is longer than this limit. */
const maxRetryAfterSeconds = 10
const retryDelaysMs = [100, 400]

/** A request as printed by --debug. Omits the query string, which may contain the path of a file. */
export interface RequestTrace {
  method: string
  path: string
  status?: number
  problem?: string
  /** Time in milliseconds until the end of the response, or until the headers of a streamed response. */
  ms: number
  requestId?: string
}

export type Trace = (request: RequestTrace) => void

interface Waiting {
  note(text: string): void
  aside(text: string): void
}

/** @param waiting reports waits and slow replies. If omitted, the client does not wait for rate limits. */
export const createApi = (settings: Settings, trace?: Trace, waiting?: Waiting) => ({
  /**
   * Sends a request.
   * @throws {CliError} with the service's error code, or a client error code such as `network`
   */
  async call<Name extends EndpointName>(name: Name, request: Request<Name>): Promise<Reply<Name>> {
    const call = await prepare(name, request, settings)
    const send = tracing(exchange, trace)
    const isStopping = ({ response }: HttpAnswer) =>
      response.statusCode === 503 && 'idempotency-key' in call.outgoing.headers
    return await waitShortly(waiting, async () => {
      const { answer, isRepeat } = await reportSlowReply(waiting, call, () =>
        exchangeWithRetries(send, call, isStopping),
      )
      if (isRepeat && wasDone(answer, call)) return undefined as Reply<Name>
      return readAnswer(answer, call) as Reply<Name>
    })
  },

  /** Sends a request and resolves when the response headers arrive. `timeoutMs` applies only until then. */
  async open<Name extends EndpointName>(name: Name, request: Request<Name>): Promise<OpenExchange> {
    const call = await prepare(name, request, settings)
    const send = tracing(openExchange, trace)
    return await waitShortly(waiting, async () => {
      const { answer: opened } = await reportSlowReply(waiting, call, () => exchangeWithRetries(send, call))
      const { response } = opened
      const { statusCode: status = 0 } = response
      if (status >= 200 && status < 300) return opened
      readAnswer({ response, text: await readText(response) }, call)
      throw new CliError(
        'unexpected_answer',
        `${call.outgoing.url.origin} replied with HTTP status ${status}.`,
      )
    })
  },

  /** Prepares a request that the caller sends itself, such as a WebSocket handshake. */
  async addressOf<Name extends EndpointName>(name: Name, request: Request<Name>) {
    const call = await prepare(name, request, settings)
    const { url, headers, method } = call.outgoing
    const refuse = (answer: HttpAnswer) => void readAnswer(answer, call)
    const traced = async (open: () => Promise<IncomingMessage>) => {
      const send = tracing(async () => ({ response: await open() }), trace)
      return (await send({ url, method })).response
    }
    return { url, headers, refuse, traced }
  },
})

interface RequestInput extends Common {
  params?: Record<string, unknown>
  query?: Record<string, unknown>
  body?: unknown
}

interface Call {
  route: Route
  given: RequestInput
  outgoing: Exchange
}

async function prepare(name: EndpointName, given: RequestInput, settings: Settings): Promise<Call> {
  const route: Route = routes[name]
  const { params, query = {}, timeoutMs = timeouts[name] ?? requestTimeoutMs } = given
  const base = await settings.baseUrl()
  assertSendable(given.headers)
  const headers = { ...(await headersFor(route, given, settings, base)), ...given.headers }
  const path = route.path.replace(/:(\w+)/g, (_, name: string) => encodeId(String(params?.[name])))
  const url = new URL(`${base}${path}`)
  for (const [name, value] of Object.entries(query)) {
    if (typeof value === 'object') {
      for (const [key, inner] of Object.entries(value ?? {})) url.searchParams.set(`${name}.${key}`, inner)
    } else if (value !== undefined) url.searchParams.set(name, String(value))
  }
  const { headers: more, body } = bodyOf(given)
  const outgoing = { url, method: route.method, headers: { ...headers, ...more }, body, timeoutMs }
  return { route, given, outgoing }
}

/** @throws {CliError} `body_too_large` if the JSON exceeds `limits.bodyBytes` */
function bodyOf({ bytes, body: value }: RequestInput): Pick<Exchange, 'headers' | 'body'> {
  if (bytes !== undefined) return { headers: { 'content-type': 'application/octet-stream' }, body: bytes }
  if (value === undefined) return { headers: {} }
  const body = JSON.stringify(value)
  const length = Buffer.byteLength(body)
  if (length <= limits.bodyBytes) {
    return { headers: { 'content-type': 'application/json', 'content-length': String(length) }, body }
  }
  const message = `The request is ${length} bytes long, which exceeds the limit of ${limits.bodyBytes} bytes.`
  throw new CliError('body_too_large', message, { hint: largeHint })
}

/** @throws {CliError} `usage` if a header that contains the user's input is not printable ASCII */
function assertSendable(headers: Common['headers'] = {}): void {
  const invalid = Object.entries(headers).find(([, value]) => !/^[\x20-\x7e]*$/.test(value))
  if (invalid === undefined) return
  const [name, value] = invalid
  throw new CliError(
    'usage',
    `${JSON.stringify(value)} is not printable ASCII, so it cannot be sent as ${name}.`,
  )
}

/** Percent-encodes an id. Rejects `.` and `..`, which the URL parser resolves even when percent-encoded. */
function encodeId(id: string): string {
  if (id !== '' && id !== '.' && id !== '..') return encodeURIComponent(id)
  throw new CliError('usage', `${JSON.stringify(id)} is not a valid id.`)
}

async function headersFor(
  route: Route,
  { token }: RequestInput,
  settings: Settings,
  base: string,
): Promise<Record<string, string>> {
  const headers = { accept: 'application/json', 'user-agent': `sandlot-cli/${version}` }
  if (route.credential === 'none') return headers
  const credential = route.credential === 'key' ? await settings.apiKey(base) : token
  return { ...headers, authorization: `Bearer ${credential}` }
}

/** Returns whether the request can be retried after a lost connection. */
function isRepeatable({ route: { repeat }, given: { query = {} }, outgoing: { headers } }: Call): boolean {
  if (repeat === 'keyed') return headers['idempotency-key'] !== undefined
  if (repeat === 'plain') return headers['if-match'] === undefined && query.overwrite !== 'false'
  return repeat !== 'no'
}

/** Returns whether a retried delete failed with 404 because the first attempt had succeeded. */
function wasDone({ response, text }: HttpAnswer, { route }: Call): boolean {
  if (route.repeat !== 'gone' || response.statusCode !== 404) return false
  const value = parseJson(text)
  return isProblem(value) && value.code === 'not_found'
}

const unknownOutcome = (error: CliError) =>
  addStory(
    error,
    'The outcome of the request is unknown.',
    'Check the state before you try again, because the request may have succeeded.',
  )

interface Answered {
  response: IncomingMessage
}

function tracing<T extends Answered, Outgoing extends Pick<Exchange, 'method' | 'url'>>(
  send: (outgoing: Outgoing) => Promise<T>,
  trace: Trace | undefined,
): (outgoing: Outgoing) => Promise<T> {
  if (trace === undefined) return send
  return async (outgoing) => {
    const { method, url } = outgoing
    const started = performance.now()
    const report = (answer: Partial<RequestTrace>) =>
      trace({ method, path: url.pathname, ms: performance.now() - started, ...answer })
    try {
      const answer = await send(outgoing)
      const { statusCode: status = 0, headers } = answer.response
      report({ status, requestId: String(headers['x-request-id'] ?? '') })
      return answer
    } catch (error) {
      report({ problem: (error as Error).message })
      throw error
    }
  }
}

async function reportSlowReply<T>(
  waiting: Waiting | undefined,
  { given, outgoing: { url, timeoutMs } }: Call,
  work: () => Promise<T>,
): Promise<T> {
  // A request with its own timeout is expected to take long.
  if (waiting === undefined || given.timeoutMs !== undefined) return await work()
  const text = `${url.origin} has not replied yet. Waiting up to ${timeoutMs / 1000} s.`
  const timer = setTimeout(() => waiting.aside(text), slowMs)
  try {
    return await work()
  } finally {
    clearTimeout(timer)
  }
}

async function waitShortly<T>(waiting: Waiting | undefined, attempt: () => Promise<T>): Promise<T> {
  for (let waited = 0; ; ) {
    try {
      return await attempt()
    } catch (error) {
      const seconds = shortWaitOf(error)
      if (waiting === undefined || seconds === undefined || waited + seconds > requestTimeoutMs / 1000)
        throw error
      waiting.note(`sandlot: ${(error as CliError).message}\nWaiting up to ${seconds} s.`)
      waited += seconds
      await sleep(seconds * 1000)
    }
  }
}

function shortWaitOf(error: unknown): number | undefined {
  if (!(error instanceof CliError) || error.code !== 'rate_limited') return undefined
  const seconds = Number(error.details.retry_after)
  return seconds <= maxRetryAfterSeconds ? Math.max(1, seconds) : undefined
}

/** Sends a request, with retries. `isRepeat` is true if an earlier attempt failed after it had connected. */
async function exchangeWithRetries<T extends Answered>(
  send: (outgoing: Exchange) => Promise<T>,
  call: Call,
  isTemporary: (answer: T) => boolean = () => false,
): Promise<{ answer: T; isRepeat: boolean }> {
  const { outgoing } = call
  const end = performance.now() + outgoing.timeoutMs
  const remaining = () => ({ ...outgoing, timeoutMs: Math.max(1, Math.ceil(end - performance.now())) })
  let isRepeat = false
  for (let tries = 0; ; tries++) {
    const pause = retryDelaysMs[tries]
    // Evaluated later, because an attempt may use up the timeout.
    const isLast = () => pause === undefined || performance.now() + pause >= end
    try {
      const answer = await send(remaining())
      setServiceClock(answer.response.headers.date)
      if (!isTemporary(answer) || isLast()) return { answer, isRepeat }
    } catch (error) {
      if (!(error instanceof ConnectionError)) throw error
      if (error.reached && !isRepeatable(call)) throw unknownOutcome(error)
      if (isLast()) throw error
      isRepeat ||= error.reached
    }
    await sleep(pause!)
  }
}

function readAnswer({ response, text }: HttpAnswer, { route, given, outgoing }: Call): unknown {
  const { statusCode: status = 0, headers } = response
  const { origin } = outgoing.url
  if (status >= 300 && status < 400) throw redirected(status, headers.location, origin)
  if (status === 204) return undefined
  const value = parseJson(text)
  if (status >= 200 && status < 300 && value !== undefined) return value
  if (isProblem(value))
    throw problemToError(value, { route, ...given, status, retryAfter: headers['retry-after'] })
  throw notSandlot(origin, status)
}

export const notSandlot = (origin: string, status: number) =>
  new CliError(
    'unexpected_answer',
    `${origin} replied with HTTP status ${status}, but the reply is not from a Sandlot service.`,
    {
      hint: 'Check the address. `sandlot config show` shows which setting it comes from.',
      details: { status },
    },
  )

const redirected = (status: number, location: string | undefined, origin: string) =>
  new CliError(
    'redirected',
    `${origin} redirects (${status}) to ${location ?? 'an unknown address'}. Redirects are not followed, so that the credentials are not sent to another address.`,
    { hint: 'If that address is correct, save it with `sandlot config set-url URL`.', details: { status } },
  )

export async function allPages<T>(
  ask: (page: {
    limit: 100
    cursor: string | undefined
  }) => Promise<{ data: T[]; next_cursor: string | null }>,
): Promise<T[]> {
  const rows: T[] = []
  for (let cursor: string | undefined; ; ) {
    const { data, next_cursor } = await ask({ limit: 100, cursor })
    rows.push(...data)
    if (next_cursor === null) return rows
    cursor = next_cursor
  }
}
