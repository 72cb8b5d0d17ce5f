import { once } from 'node:events'
import { createServer, IncomingMessage, type Server, ServerResponse } from 'node:http'
import { Socket, Server as SocketServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import Router, { type RouterContext } from '@koa/router'
import helmet from 'helmet'
import Koa from 'koa'
import { withTimeout } from '../shared/lib/timeout.ts'
import type { Context } from '../shared/platform/context.ts'
import { Problem } from '../shared/platform/problem.ts'
import { limitRequest } from '../shared/platform/sockets.ts'
import { commonChecks, listen, openInternalServer, workerChecks } from '../shared/rpc/internal-server.ts'
import { announceKeys } from '../shared/rpc/key-holders.ts'
import { type App, openApp } from './app.ts'
import { isLocal, makeHostCheck } from './http/allowed-hosts.ts'
import { aroundRequest, type RequestState } from './http/errors.ts'
import { OpenRequests, trackUnused } from './http/shutdown.ts'
import { StalledClients } from './http/stalled-clients.ts'
import { serveUpgrades, shouldUpgradeCallback } from './http/websocket.ts'
import { served } from './routes/index.ts'

/**
 * Idle timeout of connections. Common load balancers use a shorter timeout, so they close connections first.
 */
const keepAliveMs = 75_000
const headMs = 20_000
const checkEveryMs = 5_000
/** Maximum time to receive a request. A streamed body such as stdin may last as long as its sandbox. */
const uploadMs = 25 * 60 * 60 * 1000
const headerBytes = 128 * 1024
/**
 * Time to send the last error responses during a shutdown. With the default of DRAIN_SECONDS, the process
 * then exits within the 15 s that `npm start` allows.
 */
const lastResponseMs = 1_500
const unusedMs = 1_000
const internalMs = 1_000
const firstTryMs = 1_000

export function openApi(context: Context) {
  const app = openApp(context)
  const requests = new OpenRequests()
  const handle = makeKoa(app, requests).callback()
  const serve = (request: IncomingMessage, response: ServerResponse) => {
    if (limitRequest(request, response)) void handle(request, response)
  }
  const server = createServer(
    {
      shouldUpgradeCallback,
      headersTimeout: headMs,
      requestTimeout: uploadMs,
      connectionsCheckingInterval: checkEveryMs,
      maxHeaderSize: headerBytes,
    },
    serve,
  )
  // The route sends 100 Continue after authentication.
  server.on('checkContinue', serve)
  server.keepAliveTimeout = keepAliveMs
  const endTunnels = serveUpgrades(server, handle)
  const closeUnused = trackUnused(server)
  new StalledClients(context.log).watchAll(server, context.settings.clientStallSeconds)
  let withdrawKeys: ReturnType<typeof announceKeys> | undefined
  let isStopping = false
  const internal = openInternalServer(
    context,
    { ...commonChecks(context), ...workerChecks(context) },
    { isDraining: () => isStopping },
  )
  return {
    /**
     * @returns the actual port numbers, even if a configured port is 0
     * @throws {SettingsError} if a port is in use or the process is not allowed to listen on it
     */
    async listen(): Promise<{ port: number; internalPort: number }> {
      const { http, internal: inside, allowedHosts } = context.settings
      await awaitFirstConnection(context.redis)
      withdrawKeys = announceKeys(context, 'api')
      const internalPort = await listen(internal, inside, 'INTERNAL_PORT')
      const port = await listen(server, http, 'PORT')
      context.log.info({ port, internal_port: internalPort }, 'listening')
      if (allowedHosts.length === 0 && !isLocal(http.host)) {
        context.log.warn('ALLOWED_HOSTS is not set, so only requests to localhost are accepted')
      }
      return { port, internalPort }
    },
    /**
     * Waits `delayMs` so that load balancers notice the shutdown, stops accepting connections, and aborts
     * requests that are still open after `finishMs`. If `delayMs` is 0, idle connections close immediately.
     */
    async close({
      delayMs = context.settings.shutdownDelaySeconds * 1000,
      finishMs = context.settings.drainSeconds * 1000,
    } = {}): Promise<void> {
      isStopping = true
      // Keep-alive connections are closed only after a response, so that no request is lost.
      requests.closeBehind()
      if (delayMs > 0) await sleep(delayMs)
      const timers = [setTimeout(closeUnused, unusedMs), setTimeout(() => requests.giveUp(), finishMs)]
      await finish(server, finishMs + lastResponseMs, { endRest: endTunnels, endsIdle: delayMs === 0 })
      timers.forEach(clearTimeout)
      await app.apiKeys.close()
      app.workers.close()
      await withdrawKeys?.()
      await finish(internal, internalMs)
    },
  }
}

/** Waits up to a second for the Redis connection, because requests fail until Redis is connected. */
async function awaitFirstConnection(redis: Context['redis']): Promise<void> {
  if (redis.status !== 'ready') await withTimeout(firstTryMs, once(redis, 'ready')).catch(() => {})
}

function makeKoa(app: App, requests: OpenRequests): Koa {
  const koa = new Koa()
  koa.on('error', (error: Error, ctx?: { state?: Partial<RequestState> }) =>
    (ctx?.state?.log ?? app.context.log).warn({ err: error }, 'could not send a response'),
  )
  koa.use(aroundRequest(app.context, requests))
  const { allowedHosts, http } = app.context.settings
  const headers = securityHeaders()
  const checkHost = makeHostCheck(allowedHosts, http.host)
  koa.use((ctx, next) => {
    ctx.res.setHeaders(headers)
    checkHost(ctx.headers)
    return next()
  })
  const router = new Router()
  for (const { endpoint, serve } of served) {
    router.register(endpoint.path, [endpoint.method], async (ctx) => {
      const state = ctx.state as RequestState
      state.route = endpoint.path
      await serve(app, ctx)
    })
  }
  koa.use(router.routes())
  koa.use((ctx) => refuseUnknown(ctx as RouterContext))
  return koa
}

/** Returns the headers that helmet sets. They are the same for each request, so they are computed once. */
function securityHeaders(): Map<string, string> {
  const response = new ServerResponse(new IncomingMessage(new Socket()))
  helmet()(response.req, response, () => {})
  return new Map(Object.entries(response.getHeaders() as Record<string, string>))
}

function refuseUnknown(koa: RouterContext) {
  const methods = [...new Set((koa.matched ?? []).flatMap((layer) => layer.methods))]
  if (methods.length === 0)
    throw new Problem('not_found', 'This route does not exist. See /v1/openapi.json for all routes.')
  methods.push('OPTIONS')
  koa.set('Allow', methods.join(', '))
  if (koa.method === 'OPTIONS') {
    koa.status = 204
    return
  }
  throw new Problem('method_not_allowed', `This route accepts ${methods.join(', ')}.`)
}

/**
 * Stops accepting connections, and closes the remaining ones after `maxMs`.
 * @param endsIdle whether to close idle connections immediately instead of after `keepAliveMs`
 */
async function finish(server: Server, maxMs: number, { endRest = () => {}, endsIdle = true } = {}) {
  if (!server.listening) return
  const closed = new Promise((resolve) => {
    if (endsIdle) server.close(resolve)
    // `http.Server.close()` would also close idle connections.
    else SocketServer.prototype.close.call(server, resolve)
  })
  const late = setTimeout(() => {
    server.closeAllConnections()
    endRest()
  }, maxMs)
  // A connection that becomes idle after this point would otherwise stay open until the timeout.
  const idleTimer = endsIdle ? setInterval(() => server.closeIdleConnections(), 50) : undefined
  await closed
  clearTimeout(late)
  clearInterval(idleTimer)
}
