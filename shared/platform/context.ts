/** The context of a process: opened once at its start, and passed to everything else as one argument. */
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

/** Connects lazily: PostgreSQL and Redis may become available later. */
export function openContext(role: 'api' | 'worker', settings: Settings) {
  const log = openLog(role, settings.logLevel)
  const redis = connectRedis(settings.redisUrl, 'impatient', log)
  const subscriber = connectRedis(settings.redisUrl, 'patient', log)
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
    /** Fails immediately while Redis is unavailable. */
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

/** Milliseconds. The policy may be changed while Redis runs. */
const lookEveryMs = 10_000
/** The exit code for wrong settings, with which a restart would not help. */
const wrongSettings = 2

/**
 * Ends the process if the first Redis that it reaches may evict jobs. Later, that is logged and shown by /readyz,
 * because the reconciler replaces lost jobs.
 * @returns a function that stops watching
 */
function watchEvictionPolicy(redis: Redis, log: Logger): () => void {
  let before: string | undefined
  let isFirst = true
  const look = async () => {
    if (redis.status !== 'ready') return
    const wrong = await wrongEvictionPolicy(redis)
    if (wrong && isFirst) {
      log.fatal(wrong)
      process.exit(wrongSettings)
    }
    isFirst = false
    if (wrong && wrong !== before) log.error(wrong)
    before = wrong
  }
  redis.on('ready', look)
  const timer = setInterval(look, lookEveryMs).unref()
  return () => clearInterval(timer)
}
