import type { Redis } from 'ioredis'
import { openDatabase } from '../data/database.ts'
import { openQueue } from './jobs.ts'
import { type Logger, openLog } from './log.ts'
import { MemoryBudget } from './memory-budget.ts'
import { openMetrics } from './metrics.ts'
import { Notifications } from './notify.ts'
import { connectRedis, wrongEvictionPolicy } from './redis.ts'
import { makeBox, makeSealer } from './seal.ts'
import type { Settings } from './settings.ts'

export type Context = ReturnType<typeof openContext>

/** Opens a process's connections without waiting until PostgreSQL and Redis are available. */
export function openContext(role: 'api' | 'worker', settings: Settings) {
  const log = openLog(role, settings.logLevel)
  const redis = connectRedis(settings.redisUrl, 'fail-fast', log)
  const subscriber = connectRedis(settings.redisUrl, 'retry', log)
  const memoryBudget = new MemoryBudget(settings.memory, log)
  const db = openDatabase(settings.databaseUrl)
  const jobs = openQueue(redis)
  const endWatch = watchEvictionPolicy(redis, log)
  return {
    settings,
    log,
    metrics: openMetrics(role, memoryBudget),
    memoryBudget,
    db,
    /** Commands on this connection fail immediately while Redis is unavailable. */
    redis,
    jobs,
    notifications: new Notifications(subscriber),
    sealer: makeSealer(settings.secretsPublicKey),
    lines: makeBox(settings.rpcKeys),
    async close(): Promise<void> {
      endWatch()
      await jobs.close().catch(() => {})
      redis.disconnect()
      subscriber.disconnect()
      await db.close().catch(() => {})
    },
  }
}

const checkEveryMs = 10_000
/** Exit code for invalid settings, which a restart would not fix. */
const wrongSettingsCode = 2

/**
 * Checks regularly that Redis evicts no keys, because evictions lose jobs. If the first check finds a
 * problem, the process exits; problems that occur later are only logged.
 */
function watchEvictionPolicy(redis: Redis, log: Logger): () => void {
  let lastProblem: string | undefined
  let isFirst = true
  const checkPolicy = async () => {
    if (redis.status !== 'ready') return
    const problem = await wrongEvictionPolicy(redis)
    if (problem && isFirst) {
      log.fatal(problem)
      process.exit(wrongSettingsCode)
    }
    isFirst = false
    if (problem && problem !== lastProblem) log.error(problem)
    lastProblem = problem
  }
  redis.on('ready', checkPolicy)
  const timer = setInterval(checkPolicy, checkEveryMs).unref()
  return () => clearInterval(timer)
}
