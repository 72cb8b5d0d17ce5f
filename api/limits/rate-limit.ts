/**
 * Limits request rates with token buckets. Most buckets are stored in Redis and shared by all API processes.
 * The `reads` and `changes` buckets are kept in each process, so that API keys can be revoked while Redis is
 * unavailable.
 */
import type { Redis } from 'ioredis'
import type { Bucket } from '../../shared/contract/endpoint.ts'
import { TokenBuckets } from '../../shared/lib/token-buckets.ts'
import type { Context } from '../../shared/platform/context.ts'
import { Problem } from '../../shared/platform/problem.ts'
import type { Settings } from '../../shared/platform/settings.ts'

interface BucketState {
  /** Number of tokens added per minute. A full bucket holds the same number. */
  limit: number
  remaining: number
}

// The state is the number of units missing from a full bucket. A token has 60,000,000 units, which keeps the
// arithmetic exact.
const takeScript = `
  local limit, token = tonumber(ARGV[1]), 60000000
  local full = limit * token
  local t = redis.call('TIME')
  local now = t[1] * 1000000 + t[2]
  local missing, at = 0, now
  local function keep()
    redis.call('SET', KEYS[1], string.format('%.0f %.0f', missing, now), 'PX', math.ceil(missing / limit / 1000))
  end
  local stored = redis.call('GET', KEYS[1])
  if stored then
    local space = string.find(stored, ' ', 1, true)
    at = tonumber(string.sub(stored, space + 1))
    -- The limit may have been lowered since the state was stored.
    missing = math.min(full, tonumber(string.sub(stored, 1, space - 1)))
    missing = math.max(0, missing - math.max(0, now - at) * limit)
  end
  if missing + token > full then
    -- If the clock went back, tokens are restored from the current time, not from the stored one.
    if at > now then keep() end
    return {0, 0, math.ceil((missing + token - full) / limit)}
  end
  missing = missing + token
  keep()
  return {1, math.floor((full - missing) / token), 0}`

type TakeResult = [number, number, number]

type BucketRedis = Redis & { sandlotTakeToken(key: string, limit: number): Promise<TakeResult> }

/** Limit for uncached API keys per minute and address. It is high, because clients may share an address. */
const unknownKeysPerMinute = 300

const perMinute = (limit: number) => new TokenBuckets({ perSecond: limit / 60, burst: limit })

export class Buckets {
  private readonly local: Partial<Record<Bucket, TokenBuckets>>
  private readonly unknownKeys = perMinute(unknownKeysPerMinute)
  private readonly rates: Settings['rates']
  private readonly redis: BucketRedis

  constructor({ redis, settings }: Context) {
    redis.defineCommand('sandlotTakeToken', { numberOfKeys: 1, lua: takeScript })
    this.redis = redis as BucketRedis
    this.rates = settings.rates
    this.local = { reads: perMinute(settings.rates.reads), changes: perMinute(settings.rates.changes) }
  }

  /**
   * Takes a token from the bucket of `owner`, which is an account ID or a client address.
   * @param ownLimit the account's own limit in tokens per minute; applies only to buckets in Redis
   * @throws {Problem} `rate_limited` if the bucket is empty
   * @throws if the bucket is stored in Redis and Redis is unavailable
   */
  async take(bucket: Bucket, owner: string, ownLimit?: number): Promise<BucketState> {
    const limit = ownLimit ?? this.rates[bucket]
    const taken = this.local[bucket]?.take(owner)
    if (taken) {
      if ('waitMs' in taken) throw tooMany(bucket, limit, taken.waitMs)
      return { limit, ...taken }
    }
    const key = `sandlot:bucket:${bucket}:${owner}`
    const [allowed, remaining, waitUs] = await this.redis.sandlotTakeToken(key, limit)
    if (allowed === 1) return { limit, remaining }
    throw tooMany(bucket, limit, waitUs / 1000)
  }

  /**
   * Counts a request with an uncached API key against the limit for its client address.
   * @throws {Problem} `rate_limited` if the limit is exceeded
   */
  takeUnknownKey(address: string): void {
    const taken = this.unknownKeys.take(address)
    if (!('waitMs' in taken)) return
    throw new Problem(
      'rate_limited',
      `This address has sent more than ${unknownKeysPerMinute} requests with unknown or new API keys within a minute. Wait, then try again.`,
      { retryAfterSeconds: Math.max(1, Math.ceil(taken.waitMs / 1000)) },
    )
  }
}

function tooMany(bucket: Bucket, limit: number, waitMs: number): Problem {
  const retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1000))
  return new Problem(
    'rate_limited',
    `The limit is ${limit} requests of this kind per minute. Try again in ${retryAfterSeconds} s.`,
    { retryAfterSeconds, members: { bucket, limit } },
  )
}
