/** Serves liveness, readiness and metrics. */
import { createServer, type Server, type ServerResponse } from 'node:http'
import { ping } from '../data/installation.ts'
import { countByState } from '../data/sandbox-pods.ts'
import { withTimeout } from '../lib/timeout.ts'
import type { Context } from '../platform/context.ts'
import { wrongEvictionPolicy } from '../platform/redis.ts'
import { SettingsError } from '../platform/settings.ts'
import { limitRequest } from '../platform/sockets.ts'
import { listWorkers, takesCalls } from './worker-registry.ts'

type HealthCheck = () => Promise<unknown>

const checkMs = 2_000
const readinessKey = 'sandlot:readiness'
const requestMs = 20_000

export const commonChecks = ({ db, redis }: Context): Record<string, HealthCheck> => ({
  postgres: () => ping(db),
  // Writes a key, because a replica would also accept reads.
  redis: async () => {
    await redis.set(readinessKey, '1', 'PX', 10 * checkMs)
    const wrong = await wrongEvictionPolicy(redis)
    if (wrong) throw new Error(wrong)
  },
})

interface Draining {
  isDraining(): boolean
  countExecs?(): number
}

export function openInternalServer(
  context: Context,
  checks: Record<string, HealthCheck>,
  draining: Draining,
): Server {
  const all = {
    ...checks,
    process: async () => {
      if (draining.isDraining()) throw new Error('draining')
    },
  }
  return createServer({ headersTimeout: requestMs, requestTimeout: requestMs }, (request, response) => {
    if (!limitRequest(request, response)) return
    const path = request.url?.split('?')[0]
    if (path === '/healthz') return answer(response, 200, { status: 'ok' })
    if (path === '/readyz') return void sendReadiness(all, draining, response)
    if (path === '/metrics') return void sendMetrics(context, all, draining, response)
    answer(response, 404, { status: 'not found' })
  })
}

async function sendReadiness(
  checks: Record<string, HealthCheck>,
  { isDraining, countExecs }: Draining,
  response: ServerResponse,
) {
  const parts = await readParts(checks)
  const ready = Object.values(parts).every((state) => state === 'ok')
  const status = isDraining() ? 'draining' : ready ? 'ready' : 'unavailable'
  answer(response, ready ? 200 : 503, { status, parts, execs: countExecs?.() })
}

const readParts = async (checks: Record<string, HealthCheck>): Promise<Record<string, string>> =>
  Object.fromEntries(
    await Promise.all(
      Object.entries(checks).map(async ([name, check]) => [name, await stateOf(check)] as const),
    ),
  )

async function stateOf(check: HealthCheck): Promise<string> {
  try {
    await withTimeout(checkMs, check(), () => {
      throw new Error(`no response within ${checkMs / 1000} s`)
    })
    return 'ok'
  } catch (error) {
    return error instanceof Error ? (error.message.split('\n')[0] ?? error.name) : String(error)
  }
}

/** Sends the metrics. If a query fails, the metrics based on it keep their old values. */
async function sendMetrics(
  context: Context,
  checks: Record<string, HealthCheck>,
  { countExecs }: Draining,
  response: ServerResponse,
) {
  const { metrics, db, jobs } = context
  if (countExecs) metrics.servedExecs.set(countExecs())
  await Promise.allSettled([
    readParts(checks).then((parts) => {
      for (const [component, state] of Object.entries(parts))
        metrics.componentReady.set({ component }, state === 'ok' ? 1 : 0)
    }),
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

export const workerChecks = (context: Context): Record<string, HealthCheck> => ({
  workers: async () => {
    if (!(await listWorkers(context)).some(takesCalls)) throw new Error('no worker is running')
  },
  cluster: async () => {
    const workers = (await listWorkers(context)).filter(takesCalls)
    if (workers.length === 0) throw new Error('no worker is running to check the cluster')
    const problem = workers.every((worker) => worker.driverProblem !== null) && workers[0]?.driverProblem
    if (problem) throw new Error(problem)
  },
})

/**
 * Starts a server and returns its port. For port 0, the kernel chooses the port.
 * @throws {SettingsError} if the address is invalid or already in use
 */
export async function listen(
  server: Server,
  { host, port }: { host: string; port: number },
  setting: 'PORT' | 'INTERNAL_PORT' | 'RPC_PORT',
): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const reason = error.code === 'EADDRINUSE' ? 'another process uses this port' : error.message
      reject(
        new SettingsError(`Cannot listen on ${host}:${port}: ${reason}. Set ${setting} to another port.`),
      )
    })
    server.listen(port, host, resolve)
  })
  const address = server.address()
  return typeof address === 'object' && address ? address.port : port
}
