import type { Context as KoaContext, Middleware } from 'koa'
import { errors } from '../../shared/contract/errors.ts'
import { createEndpoints } from '../../shared/contract/sandboxes.ts'
import { newRequestId } from '../../shared/data/ids.ts'
import type { Context } from '../../shared/platform/context.ts'
import type { Logger } from '../../shared/platform/log.ts'
import type { Metrics } from '../../shared/platform/metrics.ts'
import { isOutage, Problem, unavailable } from '../../shared/platform/problem.ts'
import { RequestLog } from './request-log.ts'
import { hasDisconnected, type OpenRequests, stoppingOf } from './shutdown.ts'
import { type Upgrade, upgradeOf } from './websocket.ts'

export interface RequestState {
  requestId: string
  log: RequestLog
  /** Aborts when the client disconnects, or when this process is stopping and cannot wait any longer. */
  signal: AbortSignal
  route?: string
  upgrade?: Upgrade | undefined
}

const clientDisconnected = 499

export function aroundRequest({ log, metrics }: Context, requests: OpenRequests): Middleware {
  return async (koa, next) => {
    const startedAt = performance.now()
    const state = openState(koa, log, requests)
    try {
      await next()
    } catch (error) {
      const problem = asProblem(error, state)
      const isCreate = createEndpoints.some(
        ({ method, path }) => koa.method === method && state.route === path,
      )
      if (!hasDisconnected(state.signal)) countRefusal(metrics, problem, isCreate)
      answerWith(koa, problem, state.requestId)
    }
    const ms = performance.now() - startedAt
    const labels = {
      route: state.route ?? 'none',
      method: koa.method,
      status: hasDisconnected(state.signal) ? clientDisconnected : koa.status,
    }
    metrics.requests.observe(labels, ms / 1000)
    state.log.info({ ...labels, ms: Math.round(ms * 10) / 10 }, 'request')
  }
}

export function countRefusal(
  { refusals, createRefusals }: Metrics,
  { code, reason }: Problem,
  isCreate: boolean,
): void {
  refusals.inc({ code })
  if (isCreate) createRefusals.inc({ reason })
}

function openState(koa: KoaContext, log: Logger, requests: OpenRequests): RequestState {
  const requestId = newRequestId()
  koa.set({ 'X-Request-Id': requestId, 'Cache-Control': 'no-store' })
  return Object.assign(koa.state, {
    requestId,
    log: new RequestLog(log, { request_id: requestId }),
    signal: requests.follow(koa.res),
    upgrade: upgradeOf(koa.req),
  })
}

/** Returns the problem that the client receives. Internal details are only logged. */
export function asProblem(error: unknown, { log, signal }: Pick<RequestState, 'log' | 'signal'>): Problem {
  if (error instanceof Problem) {
    if (error.cause) log.warn({ code: error.code, reason: reasonOf(error.cause) }, error.message)
    return error
  }
  const stopping = stoppingOf(signal)
  if (stopping) return stopping
  if (isOutage(error)) {
    log.warn({ reason: reasonOf(error) }, 'a dependency of the service is unavailable')
    return unavailable('A dependency of this service is unavailable. Try again in a moment.')
  }
  if (!signal.aborted) log.error({ err: error }, 'a request failed')
  return new Problem(
    'internal_error',
    'An unexpected error occurred. Report the request_id to the service operator.',
  )
}

/**
 * Returns only the first line of an error message, because it is logged for every request during an outage.
 */
const reasonOf = (error: unknown) => (error instanceof Error ? error.message.split('\n')[0] : String(error))

function answerWith(koa: KoaContext, problem: Problem, requestId: string) {
  const { status, title } = errors[problem.code]
  koa.status = status
  koa.set('Content-Type', 'application/problem+json')
  if (status === 401) koa.set('WWW-Authenticate', 'Bearer')
  if (problem.retryAfterSeconds !== undefined) {
    koa.set('Retry-After', String(Math.max(1, Math.ceil(problem.retryAfterSeconds))))
  }
  const { allow, encodings, end } = problem.members
  if (allow) koa.set('Allow', (allow as string[]).join(', '))
  if (encodings) koa.set('Accept-Encoding', (encodings as string[]).join(', '))
  if (status === 416) koa.set('Content-Range', `bytes */${end}`)
  // A request may take tokens from several buckets. The headers describe the empty one.
  const { bucket, limit } = problem.members
  if (bucket) koa.set({ 'X-RateLimit-Limit': String(limit), 'X-RateLimit-Remaining': '0' })
  koa.body = JSON.stringify({
    type: 'about:blank',
    title,
    status,
    detail: problem.message,
    code: problem.code,
    request_id: requestId,
    ...problem.members,
  })
}
