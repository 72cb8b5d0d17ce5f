/** Connections to Redis, and the one setting of Redis that the service depends on. */
import { Redis, type RedisOptions } from 'ioredis'
import type { Logger } from './log.ts'

/** Milliseconds without an answer after which a connection is replaced. No command blocks as long. */
const silentMs = 3_000
/** Each connection is used this often, so that an outage or a failover is noticed before a request fails. */
const beatEveryMs = 1_000
/** This key never exists, but a replica refuses to delete it. */
const beatKey = 'sandlot:beat'

type Patience = 'impatient' | 'patient'

/**
 * A connection that is replaced when the server does not answer for 4 s, and immediately when it is no longer a
 * primary. Unanswered commands are sent again.
 *
 * `impatient` fails immediately while Redis is unavailable, for requests; `patient` waits for it, for the queue's
 * loops.
 * @param url `redis://…`, `rediss://…`, or `unix:///path` with `?db=N`
 */
export function connectRedis(url: string, patience: Patience, log: Logger): Redis {
  const options = {
    connectTimeout: 2_000,
    socketTimeout: silentMs,
    disconnectTimeout: 1_000,
    ...(patience === 'patient'
      ? { maxRetriesPerRequest: null }
      : { maxRetriesPerRequest: 1, enableOfflineQueue: false, commandTimeout: 2_000 }),
  }
  return open(url.replace(/^unix:\/\//, ''), options, patience, log)
}

/** Also opens the duplicate on which BullMQ's loop blocks. */
function open(url: string, given: RedisOptions, patience: Patience, log: Logger): Redis {
  const options: RedisOptions = { ...given, ...leaveReplicas(() => redis, patience, log) }
  // Replies as in RESP2, so that scripts' answers stay arrays and strings.
  const redis: Redis = new Redis(url, { ...options, replyMapping: 'legacy' })
  redis.duplicate = ((other) => open(url, { ...given, ...other }, patience, log)) as Redis['duplicate']
  reportOutage(redis, log)
  keepBeating(redis)
  return redis
}

/** Error replies of a server that is not a primary, or must not act as one. It has not executed the command. */
const takesNoWrites = /^(READONLY|UNBLOCKED|MASTERDOWN|NOREPLICAS|LOADING)\b/
/** Milliseconds between two attempts while every connection leads to such a server. */
const againMs = 1_000

/** Options with which a connection leaves such a server, and repeats its commands at the next one. */
function leaveReplicas(get: () => Redis, patience: Patience, log: Logger): RedisOptions {
  const left: { socket: unknown; at: number } = { socket: undefined, at: Number.NEGATIVE_INFINITY }
  let pauseMs = 0
  return {
    retryStrategy(attempt) {
      const ms = Math.min(50 * attempt + pauseMs, 1_000)
      pauseMs = 0
      return ms
    },
    reconnectOnError({ message }) {
      if (!takesNoWrites.test(message)) return false
      const redis = get()
      // Of several refused commands, the first decides.
      if (redis.stream !== left.socket) {
        const now = performance.now()
        const sinceMs = now - left.at
        const isAgain = sinceMs < 2 * againMs
        if (!isAgain) log.warn({ reply: message }, 'Redis takes no writes: connecting anew')
        else if (patience === 'patient') pauseMs = againMs
        // The request fails. One in the next second reconnects again.
        else if (sinceMs < againMs) return false
        Object.assign(left, { socket: redis.stream, at: now })
        // ioredis adds a listener for each command that is refused.
        redis.stream.setMaxListeners(0)
        if (patience === 'impatient') queueFor(againMs, redis)
      }
      return 2
    },
  }
}

/** Lets commands wait for the next connection for some time, instead of failing immediately. */
function queueFor(ms: number, { options }: Redis) {
  options.enableOfflineQueue = true
  setTimeout(() => {
    options.enableOfflineQueue = false
  }, ms).unref()
}

function keepBeating(redis: Redis) {
  let timer: NodeJS.Timeout | undefined
  redis.on('ready', () => {
    timer = setInterval(() => void redis.del(beatKey).catch(() => {}), beatEveryMs)
  })
  redis.on('close', () => clearInterval(timer))
}

/** Logs one line when Redis becomes unavailable and one when it is back. */
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
 * Checks that Redis does not evict keys, which would lose jobs.
 * @returns the problem, or undefined; a Redis that hides its settings is trusted
 */
export async function wrongEvictionPolicy(redis: Redis): Promise<string | undefined> {
  const answer = await redis.config('GET', 'maxmemory-policy').catch(() => [])
  const [, policy] = answer as string[]
  if (policy === undefined || policy === 'noeviction') return undefined
  return `Redis has maxmemory-policy ${policy}, under which it drops jobs when memory is short. Set it to noeviction.`
}
