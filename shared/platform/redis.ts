import { Redis, type RedisOptions } from 'ioredis'
import { whenSilentFor } from './event-loop-stall.ts'
import type { Logger } from './log.ts'

/** A connection is replaced if it receives no data for this time. No command blocks for as long. */
const livenessMs = 3_000
/** How long a command of a `fail-fast` connection waits for its reply. */
const commandMs = 2_000
/** Interval between heartbeats, which detect an outage or failover before a request fails. */
const heartbeatMs = 1_000
/**
 * Each heartbeat deletes this key, which never exists. A replica rejects the command, which reveals that the
 * server is no longer a primary.
 */
const heartbeatKey = 'sandlot:beat'

type OutageMode = 'fail-fast' | 'retry'

/**
 * Connects to Redis. A connection is replaced after 4 s of silence, and immediately if the server is no
 * longer a primary. Commands without a reply are sent again on the new connection.
 * @param url `redis://…`, `rediss://…`, or `unix:///path`, to which `?db=N` can be added
 * @param mode while Redis is unavailable, commands fail immediately (`fail-fast`) or wait (`retry`)
 */
export function connectRedis(url: string, mode: OutageMode, log: Logger): Redis {
  const options = {
    connectTimeout: 2_000,
    socketTimeout: livenessMs,
    disconnectTimeout: 1_000,
    ...(mode === 'retry'
      ? { maxRetriesPerRequest: null }
      : { maxRetriesPerRequest: 1, enableOfflineQueue: false }),
  }
  return open(url.replace(/^unix:\/\//, ''), options, mode, log)
}

/**
 * Opens a connection. Its `duplicate` method, which BullMQ calls for blocking commands, opens connections
 * with the same behavior.
 */
function open(url: string, given: RedisOptions, mode: OutageMode, log: Logger): Redis {
  const options: RedisOptions = { ...given, ...leaveReplicas(() => redis, mode, log) }
  // With RESP2 replies, scripts return arrays and strings.
  const redis: Redis = new Redis(url, { ...options, replyMapping: 'legacy' })
  redis.duplicate = ((other) => open(url, { ...given, ...other }, mode, log)) as Redis['duplicate']
  if (mode === 'fail-fast') limitCommands(redis)
  reportOutage(redis, log)
  sendHeartbeats(redis)
  return redis
}

/**
 * Rejects commands without a reply after {@link commandMs}. The option `commandTimeout` of ioredis would also
 * reject commands whose replies arrived while this process was stalled.
 */
function limitCommands(redis: Redis) {
  const send = redis.sendCommand.bind(redis)
  redis.sendCommand = (command, stream) => {
    const settled = whenSilentFor(commandMs, () => command.reject(new Error('Command timed out')))
    command.promise.then(settled, settled)
    return send(command, stream)
  }
}

const readOnlyReplies = /^(READONLY|UNBLOCKED|MASTERDOWN|NOREPLICAS|LOADING)\b/
const failoverRetryMs = 1_000

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
      // Of several refused commands on one connection, only the first one triggers a reconnection.
      if (redis.stream !== left.socket) {
        const now = performance.now()
        const sinceMs = now - left.at
        const isAgain = sinceMs < 2 * failoverRetryMs
        if (!isAgain) log.warn({ reply: message }, 'Redis is read-only: reconnecting')
        else if (mode === 'retry') pauseMs = failoverRetryMs
        // Lets the request fail. A later request reconnects again.
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
 * Returns a description of the problem if Redis evicts keys, which would lose jobs. Returns undefined if
 * there is no problem or if CONFIG is not permitted.
 */
export async function wrongEvictionPolicy(redis: Redis): Promise<string | undefined> {
  const reply = await redis.config('GET', 'maxmemory-policy').catch(() => [])
  const [, policy] = reply as string[]
  if (policy === undefined || policy === 'noeviction') return undefined
  return `Redis has maxmemory-policy ${policy}, which evicts jobs when memory is short. Set it to noeviction.`
}
