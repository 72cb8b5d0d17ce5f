/** The context of a process: opened once in its entry, and passed to everything else as one argument. */
import type { Redis } from 'ioredis'
import { openDatabase } from '../data/database.ts'
import { openQueue } from './jobs.ts'
import { Ledger } from './ledger.ts'
import { type Logger, openLog } from './log.ts'
import { openMetrics } from './metrics.ts'
import { Notifications } from './notify.ts'
import { connectRedis, wrongEvictionPolicy } from './redis.ts'
import { makeBox, makeSealer } from './seal.ts'
import type { Settings } from './settings.ts'

export type Context = ReturnType<typeof openContext>

/** Connects lazily: PostgreSQL and Redis may be away now and come later. */
export function openContext(role: 'api' | 'worker', settings: Settings) {
  const log = openLog(role, settings.logLevel)
  const redis = connectRedis(settings.redisUrl, 'impatient', log)
  const subscriber = connectRedis(settings.redisUrl, 'patient', log)
  const ledger = new Ledger(settings.memory, log)
  const db = openDatabase(settings.databaseUrl)
  const jobs = openQueue(redis)
  watchEvictionPolicy(redis, log)
  return {
    settings,
    log,
    metrics: openMetrics(role, ledger),
    ledger,
    db,
    /** Fails at once when Redis is away. */
    redis,
    jobs,
    notifications: new Notifications(subscriber),
    /** Seals what only workers can open. */
    sealer: makeSealer(settings.secretsPublicKey),
    /** Seals and opens the lines of commands. */
    lines: makeBox(settings.callsKeys),
    async close(): Promise<void> {
      await jobs.close().catch(() => {})
      redis.disconnect()
      subscriber.disconnect()
      await db.close().catch(() => {})
    },
  }
}

/** Ends the process when Redis may evict jobs, whenever it is first reached. */
function watchEvictionPolicy(redis: Redis, log: Logger) {
  redis.on('ready', async () => {
    const wrong = await wrongEvictionPolicy(redis)
    if (!wrong) return
    log.fatal(wrong)
    process.exit(1)
  })
}
