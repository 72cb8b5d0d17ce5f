/** Combines an endpoint of the contract with its handler. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import type { Context as KoaContext } from 'koa'
import type * as z from 'zod'
import type { Endpoint, Input } from '../../shared/contract/endpoint.ts'
import type { Reservation } from '../../shared/platform/memory-budget.ts'
import { onceClosed } from '../../shared/platform/sockets.ts'
import type { App } from '../app.ts'
import { authenticate, type Caller, requireScope } from '../auth/authenticate.ts'
import { closeOnRevocation } from '../auth/revocation.ts'
import { assertSupportedHeaders } from './assert-supported-headers.ts'
import { readBody } from './body.ts'
import type { RequestState } from './errors.ts'
import { readQuery } from './query.ts'
import type { RequestLog } from './request-log.ts'
import { allowLongStall } from './stalled-clients.ts'
import { validate } from './validate.ts'
import type { Upgrade } from './websocket.ts'

/** A request, parsed with the endpoint's schemas. */
export interface Call<E extends Endpoint> {
  account: E['credential'] extends 'none' ? undefined : Caller
  params: Input<E['params']>
  query: Input<E['query']>
  body: Input<E['body']>
  headers: Input<E['headers']>
  request: IncomingMessage
  upgrade: Upgrade | undefined
  requestId: string
  log: RequestLog
  signal: AbortSignal
}

export class JsonReply<T> {
  readonly reply: T
  readonly status: number | undefined
  readonly headers: Record<string, string>

  constructor(reply: T, { status, headers = {} }: { status?: number; headers?: Record<string, string> }) {
    this.reply = reply
    this.status = status
    this.headers = headers
  }
}

export class StreamReply {
  readonly body: Readable
  readonly status: number
  readonly headers: Record<string, string>

  constructor({ body, status, headers }: { body: Readable; status: number; headers: IncomingHttpHeaders }) {
    this.body = body
    this.status = status
    this.headers = Object.fromEntries(
      Object.entries(headers).flatMap(([name, value]) =>
        typeof value !== 'string' || ofConnection.has(name) ? [] : [[name, value]],
      ),
    )
  }
}

const ofConnection = new Set(['connection', 'keep-alive', 'transfer-encoding', 'date', 'trailer', 'upgrade'])

export const answered = Symbol('answered')

export interface ServedRoute {
  endpoint: Endpoint
  serve(app: App, koa: KoaContext): Promise<void>
  invoke(app: App, call: Invocation): Promise<JsonReply<unknown>>
}

/** An internal call to a route, for example to run an MCP tool. Its fields have not been validated yet. */
export interface Invocation extends Pick<Call<Endpoint>, 'requestId' | 'log' | 'signal'> {
  account: Caller
  params?: unknown
  query?: unknown
  headers?: unknown
  body?: unknown
}

/**
 * Maximum number of concurrent requests per account and API process. Rate limits count only the start of a
 * request, so they do not limit how many streams stay open.
 */
const maxOpenRequests = 1_000

type Reply<E extends Endpoint> = E['reply'] extends z.ZodType ? z.output<E['reply']> : undefined

export function route<E extends Endpoint>(
  endpoint: E,
  handle: (
    call: Call<E>,
    app: App,
  ) => Promise<Reply<E> | JsonReply<Reply<E>> | StreamReply | typeof answered>,
): ServedRoute {
  return {
    endpoint,
    async serve(app, koa) {
      const state = koa.state as RequestState
      const caller = await identify(app, endpoint, koa)
      const { memoryBudget } = app.context
      const sent = caller
        ? memoryBudget.openLimited(caller.id, 'requests', maxOpenRequests)
        : memoryBudget.open(undefined, 'requests')
      const unread = memoryBudget.open(caller?.id, 'answers')
      onceClosed(koa.res, () => {
        sent.free()
        unread.free()
      })
      await takeToken(app, endpoint, koa, caller)
      assertSupportedHeaders(endpoint, koa.headers)
      // Without this check, the request would wait for a body that a disconnected client never sends.
      state.signal.throwIfAborted()
      // A client that sent `Expect: 100-continue` has received earlier errors before it sends the body.
      if ((endpoint.body || endpoint.rawBody) && koa.headers.expect) koa.res.writeContinue()
      const body = endpoint.body ? await readBody(koa, endpoint, sent) : undefined
      // The key may have been revoked while the body was arriving.
      const account = endpoint.body ? await caller?.again() : caller
      if (account) closeOnRevocation(app, account, koa.res)
      const query = readQuery(koa.querystring)
      const given = await validate(endpoint, { params: koa.params, query, headers: koa.headers, body })
      nameSandbox(state, given.params)
      const { requestId, log, signal, upgrade } = state
      const call = { ...given, account, requestId, log, signal, request: koa.req, upgrade }
      const answer = await handle(call as unknown as Call<E>, app)
      if (answer === answered) return handOff(koa)
      if (answer instanceof StreamReply) return replyWith(koa, answer)
      reply(koa, endpoint, answer instanceof JsonReply ? answer : new JsonReply(answer, {}), unread)
    },
    async invoke(app, { account, requestId, log, signal, ...parts }) {
      requireScope(account, endpoint)
      await app.buckets.take(endpoint.bucket, account.id, account.overrides[endpoint.bucket])
      const empty = { params: {}, query: {}, headers: {}, body: undefined }
      const given = await validate(endpoint, { ...empty, ...parts })
      const answer = await handle({ ...given, account, requestId, log, signal } as Call<E>, app)
      return answer instanceof JsonReply ? answer : new JsonReply(answer, {})
    },
  }
}

async function identify(app: App, endpoint: Endpoint, koa: KoaContext): Promise<Caller | undefined> {
  if (endpoint.credential === 'none') return undefined
  const account = await authenticate(app, endpoint.credential, koa.headers.authorization, () =>
    app.clientAddress(koa.req),
  )
  requireScope(account, endpoint)
  ;(koa.state as RequestState).log.addIds({ account_id: account.id })
  return account
}

function nameSandbox(state: RequestState, params: unknown) {
  const { id } = (params ?? {}) as { id?: string }
  if (id !== undefined) state.log.addIds({ sandbox_id: id })
}

async function takeToken(app: App, { bucket }: Endpoint, koa: KoaContext, account: Caller | undefined) {
  const taken = account
    ? app.buckets.take(bucket, account.id, account.overrides[bucket])
    : app.buckets.take(bucket, app.clientAddress(koa.req))
  const { limit, remaining } = await taken
  const headers = { 'X-RateLimit-Limit': String(limit), 'X-RateLimit-Remaining': String(remaining) }
  koa.set(headers)
  const { upgrade, requestId } = koa.state as RequestState
  if (upgrade) Object.assign(upgrade.headers, headers, { 'X-Request-Id': requestId })
}

/**
 * Sends a handler's reply.
 * @throws {Problem} if the request is a GET and the account's unread responses exceed its memory budget
 */
function reply(
  koa: KoaContext,
  endpoint: Endpoint,
  { reply, status, headers }: JsonReply<unknown>,
  unread: Reservation,
): void {
  koa.status = status ?? endpoint.status
  koa.set(headers)
  if (typeof reply !== 'object' || !reply || reply instanceof Readable || reply instanceof Uint8Array) {
    koa.body = reply ?? null
    return
  }
  // Node writes a string together with the headers, but a buffer separately.
  const json = JSON.stringify(reply)
  const size = Buffer.byteLength(json)
  // Unauthenticated responses are small or rare, so they do not count toward the budget.
  if (endpoint.credential !== 'none') {
    if (endpoint.method === 'GET') unread.add(size)
    // A refusal would hide the effect of the request. `Workers.call` has already limited the size of its reply.
    else unread.addAlways(size)
  }
  koa.set('Content-Type', 'application/json; charset=utf-8')
  koa.body = json
}

function replyWith(koa: KoaContext, { body, status, headers }: StreamReply) {
  koa.status = status
  koa.body = body
  koa.set(headers)
  if (headers['content-type']?.startsWith('text/event-stream')) allowLongStall(koa.res)
}

function handOff(koa: KoaContext) {
  koa.status = 101
  koa.respond = false
}
