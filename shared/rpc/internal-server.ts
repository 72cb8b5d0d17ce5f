/** The server on the internal port of every process: liveness, readiness and metrics. */
import { createServer, type Server, type ServerResponse } from 'node:http'
import { ping } from '../data/ping.ts'
import { countByState } from '../data/sandbox-pods.ts'
import { withTimeout } from '../lib/timeout.ts'
import type { Context } from '../platform/context.ts'
import { wrongEvictionPolicy } from '../platform/redis.ts'
import { SettingsError } from '../platform/settings.ts'
import { limitRequest } from '../platform/sockets.ts'
import { listWorkers, takesCalls } from './directory.ts'

/** Resolves when the part is available, else rejects with the reason. */
type HealthCheck = () => Promise<unknown>

const checkMs = 2_000
const readinessKey = 'sandlot:readiness'
/** Milliseconds for a request, which has no body. */
const requestMs = 20_000

/** The parts that every process needs, by their names in /readyz. */
export const commonChecks = ({ db, redis }: Context): Record<string, HealthCheck> => ({
  postgres: () => ping(db),
  // A replica answers reads.
  redis: async () => {
    await redis.set(readinessKey, '1', 'PX', 10 * checkMs)
    const wrong = await wrongEvictionPolicy(redis)
    if (wrong) throw new Error(wrong)
  },
})

export function openInternalServer(context: Context, checks: Record<string, HealthCheck>): Server {
  return createServer({ headersTimeout: requestMs, requestTimeout: requestMs }, (request, response) => {
    if (!limitRequest(request, response)) return
    const path = request.url?.split('?')[0]
    if (path === '/healthz') return answer(response, 200, { status: 'ok' })
    if (path === '/readyz') return void tellReadiness(checks, response)
    if (path === '/metrics') return void tellMetrics(context, response)
    answer(response, 404, { status: 'not found' })
  })
}

async function tellReadiness(checks: Record<string, HealthCheck>, response: ServerResponse) {
  const parts = Object.fromEntries(
    await Promise.all(
      Object.entries(checks).map(async ([name, check]) => [name, await stateOf(check)] as const),
    ),
  )
  const ready = Object.values(parts).every((state) => state === 'ok')
  answer(response, ready ? 200 : 503, { status: ready ? 'ready' : 'unavailable', parts })
}

async function stateOf(check: HealthCheck): Promise<string> {
  try {
    await withTimeout(checkMs, check(), () => {
      throw new Error(`no answer within ${checkMs / 1000} s`)
    })
    return 'ok'
  } catch (error) {
    return error instanceof Error ? (error.message.split('\n')[0] ?? error.name) : String(error)
  }
}

/** Answers the metrics. Those that need a query are read now, and omitted when that fails. */
async function tellMetrics(context: Context, response: ServerResponse) {
  const { metrics, db, jobs } = context
  await Promise.allSettled([
    countByState(db).then((rows) => {
      metrics.sandboxes.reset()
      for (const { state, count } of rows) metrics.sandboxes.set({ state }, count)
    }),
    jobs.depth().then((depth) => {
      for (const [state, count] of Object.entries(depth)) metrics.queueDepth.set({ state }, count)
    }),
  ])
  response.setHeader('content-type', metrics.registry.contentType)
  response.end(await metrics.registry.metrics())
}

export function answer(response: ServerResponse, status: number, body: unknown) {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}

/** The API's checks of the workers and the cluster. */
export const workerChecks = (context: Context): Record<string, HealthCheck> => ({
  workers: async () => {
    if (!(await listWorkers(context)).some(takesCalls)) throw new Error('no worker is running')
  },
  cluster: async () => {
    const workers = (await listWorkers(context)).filter(takesCalls)
    if (workers.length === 0) throw new Error('no worker is there to ask it')
    const problem = workers.every((worker) => worker.driverProblem !== null) && workers[0]?.driverProblem
    if (problem) throw new Error(problem)
  },
})

/**
 * Listens.
 * @param setting the one of the port, for the error
 * @returns the port, the actual one where 0 was asked for
 * @throws {SettingsError} with the address, when it is taken or cannot be used
 */
export async function listen(
  server: Server,
  { host, port }: { host: string; port: number },
  setting: 'PORT' | 'INTERNAL_PORT' | 'RPC_PORT',
): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const words = error.code === 'EADDRINUSE' ? 'is taken by another process' : error.message
      reject(new SettingsError(`Cannot listen on ${host}:${port}: it ${words}. Set ${setting} to another.`))
    })
    server.listen(port, host, resolve)
  })
  const address = server.address()
  return typeof address === 'object' && address ? address.port : port
}
