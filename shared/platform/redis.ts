/** Connections to Redis, and the one setting of Redis that the service depends on. */
import { Redis } from 'ioredis'
import type { Logger } from './log.ts'

/**
 * `impatient` fails at once while Redis is away, for requests; `patient` waits for it, for the queue's loops.
 * @param url `redis://…`, `rediss://…`, or `unix:///path` with `?db=N`
 */
export function connectRedis(url: string, patience: 'impatient' | 'patient', log: Logger): Redis {
  const options = {
    connectTimeout: 2_000,
    retryStrategy: (attempt: number) => Math.min(50 * attempt, 1_000),
    ...(patience === 'patient'
      ? { maxRetriesPerRequest: null }
      : { maxRetriesPerRequest: 1, enableOfflineQueue: false, commandTimeout: 2_000 }),
  }
  // Replies as in RESP2, so that scripts' answers stay arrays and strings.
  const redis = new Redis(url.replace(/^unix:\/\//, ''), { ...options, replyMapping: 'legacy' })
  reportOutage(redis, log)
  return redis
}

/** Logs one line when Redis goes away and one when it is back, however often the client retries. */
function reportOutage(redis: Redis, log: Logger) {
  let away = false
  redis.on('error', (error: Error) => {
    if (!away) log.warn({ err: error }, 'Redis is away')
    away = true
  })
  redis.on('ready', () => {
    if (away) log.info('Redis is back')
    away = false
  })
}

/**
 * A Redis that evicts keys would lose jobs in silence.
 * @returns what is wrong, or undefined; a Redis that hides its settings is trusted
 */
export async function wrongEvictionPolicy(redis: Redis): Promise<string | undefined> {
  const answer = await redis.config('GET', 'maxmemory-policy').catch(() => [])
  const [, policy] = answer as string[]
  if (policy === undefined || policy === 'noeviction') return undefined
  return `Redis has maxmemory-policy ${policy}, under which it drops jobs when memory is short. Set it to noeviction.`
}
