/** The context of a process: opened once in its entry, and passed to everything else as one argument. */
import type { Redis } from 'ioredis'
import { type Database, openDatabase } from '../data/database.ts'
import { type JobQueue, openQueue } from './jobs.ts'
import { type Logger, openLog } from './log.ts'
import { type Metrics, openMetrics } from './metrics.ts'
import { listenForNotifications, type Notifications } from './notify.ts'
import { connectRedis, wrongEvictionPolicy } from './redis.ts'
import { makeBox, makeSealer, type Opener, type Sealer } from './seal.ts'
import type { Settings } from './settings.ts'

export interface Context {
  settings: Settings
  log: Logger
  metrics: Metrics
  db: Database
  /** Fails at once when Redis is away. */
  redis: Redis
  jobs: JobQueue
  notifications: Notifications
  /** Seals what only workers can open. */
  sealer: Sealer
  /** Seals and opens the lines of commands. */
  lines: Sealer & Opener
  close(): Promise<void>
}

/** Connects lazily: PostgreSQL and Redis may be away now and come later. */
export function openContext(role: 'api' | 'worker', settings: Settings): Context {
  const log = openLog(role, settings.logLevel)
  const redis = connectRedis(settings.redisUrl, 'impatient', log)
  const subscriber = connectRedis(settings.redisUrl, 'patient', log)
  const db = openDatabase(settings.databaseUrl)
  const jobs = openQueue(redis)
  watchEvictionPolicy(redis, log)
  return {
    settings,
    log,
    metrics: openMetrics(role),
    db,
    redis,
    jobs,
    notifications: listenForNotifications(subscriber),
    sealer: makeSealer(settings.secretsPublicKey),
    lines: makeBox(settings.callsKeys),
    async close() {
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
