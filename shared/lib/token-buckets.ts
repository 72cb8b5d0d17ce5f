/**
 * Maximum number of buckets. At this limit, the least recently used bucket is dropped, so its owner starts
 * with a full bucket again.
 */
const maxOwners = 10_000
/** Buckets count thousandths of a token, so that each millisecond adds `perSecond` units. */
const token = 1_000

interface Bucket {
  /** Thousandths of a token that must be added to fill the bucket. */
  missing: number
  at: number
}

interface Rate {
  perSecond: number
  burst: number
}

export class TokenBuckets {
  private readonly rate: Rate
  private readonly now: () => number
  private readonly buckets = new Map<string, Bucket>()

  /** @param now returns the time of a monotonic clock, in milliseconds */
  constructor(rate: Rate, now: () => number = () => performance.now()) {
    this.rate = rate
    this.now = now
  }

  /** Takes one token. If no token is available, returns the milliseconds until the next one. */
  take(owner: string): { remaining: number } | { waitMs: number } {
    const { burst, perSecond } = this.rate
    const bucket = this.refilled(owner)
    const over = bucket.missing + token - burst * token
    if (over > 0) return { waitMs: Math.ceil(over / perSecond) }
    bucket.missing += token
    return { remaining: Math.floor(burst - bucket.missing / token) }
  }

  /**
   * Takes tokens, even if the bucket's balance becomes negative. A negative `tokens` puts tokens back.
   * @returns the milliseconds until the balance is no longer negative, or 0
   */
  spend(owner: string, tokens: number): number {
    const { burst, perSecond } = this.rate
    const bucket = this.refilled(owner)
    bucket.missing = Math.max(0, bucket.missing + tokens * token)
    return Math.max(0, Math.ceil((bucket.missing - burst * token) / perSecond))
  }

  private refilled(owner: string): Bucket {
    const { buckets, rate } = this
    const at = this.now()
    const bucket = buckets.get(owner) ?? { missing: 0, at }
    bucket.missing = Math.max(0, bucket.missing - (at - bucket.at) * rate.perSecond)
    bucket.at = at
    // A map iterates in insertion order, so deleting first makes this bucket the most recently used one.
    buckets.delete(owner)
    if (buckets.size >= maxOwners) buckets.delete(buckets.keys().next().value!)
    buckets.set(owner, bucket)
    return bucket
  }
}
