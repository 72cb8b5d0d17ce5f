/** Connections to Redis, and the check of the Redis setting that the service depends on. */
import { Redis, type RedisOptions } from 'ioredis'
import type { Logger } from './log.ts'

/** Milliseconds without data after which a connection is replaced. No command blocks that long. */
const livenessMs = 3_000
/** The interval of commands that detect an outage or a failover before a request fails. */
const heartbeatMs = 1_000
/** This key never exists, but a replica refuses to delete it. */
const heartbeatKey = 'sandlot:beat'

type OutageMode = 'fail-fast' | 'retry'

/**
 * Opens a connection that is replaced when the server does not answer for 4 s, and immediately when it is no longer a
 * primary. Unanswered commands are sent again.
 * @param mode while Redis is unavailable, `fail-fast` fails commands immediately, and `retry` waits
 * @param url `redis://…`, `rediss://…`, or `unix:///path` with `?db=N`
 */
export function connectRedis(url: string, mode: OutageMode, log: Logger): Redis {
  const options = {
    connectTimeout: 2_000,
    socketTimeout: livenessMs,
    disconnectTimeout: 1_000,
    ...(mode === 'retry'
      ? { maxRetriesPerRequest: null }
      : { maxRetriesPerRequest: 1, enableOfflineQueue: false, commandTimeout: 2_000 }),
  }
  return open(url.replace(/^unix:\/\//, ''), options, mode, log)
}

/** Duplicates, on which BullMQ's blocking commands run, are opened by the same function. */
function open(url: string, given: RedisOptions, mode: OutageMode, log: Logger): Redis {
  const options: RedisOptions = { ...given, ...leaveReplicas(() => redis, mode, log) }
  // Replies in the format of RESP2, in which scripts return arrays and strings.
  const redis: Redis = new Redis(url, { ...options, replyMapping: 'legacy' })
  redis.duplicate = ((other) => open(url, { ...given, ...other }, mode, log)) as Redis['duplicate']
  reportOutage(redis, log)
  sendHeartbeats(redis)
  return redis
}

/** Error replies of a server that is not a primary, or must not act as one, and has not executed the command. */
const readOnlyReplies = /^(READONLY|UNBLOCKED|MASTERDOWN|NOREPLICAS|LOADING)\b/
/** Milliseconds between two attempts while every connection reaches such a server. */
const failoverRetryMs = 1_000

/** Options that close a connection to such a server and repeat its commands on the next connection. */
function leaveReplicas(get: () => Redis, mode: OutageMode, log: Logger): RedisOptions {
  const left: { socket: unknown; at: number } = { socket: undefined, at: Number.NEGATIVE_INFINITY }
  let pauseMs = 0
  return {
    retryStrategy(attempt) {
      const ms = Math.min(50 * attempt + pauseMs, 1_000)
      pauseMs = 0
      return ms
    },
    reconnectOnError({ message }) {
      if (!readOnlyReplies.test(message)) return false
      const redis = get()
      // Only the first of several refused commands decides.
      if (redis.stream !== left.socket) {
        const now = performance.now()
        const sinceMs = now - left.at
        const isAgain = sinceMs < 2 * failoverRetryMs
        if (!isAgain) log.warn({ reply: message }, 'Redis is read-only: reconnecting')
        else if (mode === 'retry') pauseMs = failoverRetryMs
        // The request fails. A later one reconnects again.
        else if (sinceMs < failoverRetryMs) return false
        Object.assign(left, { socket: redis.stream, at: now })
        // ioredis adds a listener for each refused command.
        redis.stream.setMaxListeners(0)
        if (mode === 'fail-fast') queueFor(failoverRetryMs, redis)
      }
      return 2
    },
  }
}

/** Queues commands for the next connection for some time, instead of failing them immediately. */
function queueFor(ms: number, { options }: Redis) {
  options.enableOfflineQueue = true
  setTimeout(() => {
    options.enableOfflineQueue = false
  }, ms).unref()
}

function sendHeartbeats(redis: Redis) {
  let timer: NodeJS.Timeout | undefined
  redis.on('ready', () => {
    timer = setInterval(() => void redis.del(heartbeatKey).catch(() => {}), heartbeatMs)
  })
  redis.on('close', () => clearInterval(timer))
}

/** Logs when Redis becomes unavailable and when it is available again. */
function reportOutage(redis: Redis, log: Logger) {
  let isUnavailable = false
  redis.on('error', (error: Error) => {
    if (!isUnavailable) log.warn({ err: error }, 'Redis is unavailable')
    isUnavailable = true
  })
  redis.on('ready', () => {
    if (isUnavailable) log.info('Redis is available again')
    isUnavailable = false
  })
}

/**
 * Checks that Redis does not evict keys, because that would lose jobs.
 * @returns the problem, or undefined, also if Redis does not permit CONFIG
 */
export async function wrongEvictionPolicy(redis: Redis): Promise<string | undefined> {
  const answer = await redis.config('GET', 'maxmemory-policy').catch(() => [])
  const [, policy] = answer as string[]
  if (policy === undefined || policy === 'noeviction') return undefined
  return `Redis has maxmemory-policy ${policy}, which evicts jobs when memory is short. Set it to noeviction.`
}
