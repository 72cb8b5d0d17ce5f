/** Token buckets that one process counts by itself: one per owner, refilled steadily. */

/** With more owners than this, the one that took tokens the longest ago starts with a full bucket. */
const maxOwners = 10_000
/** Thousandths of a token are counted: a millisecond earns as many of them as the rate has tokens per second. */
const token = 1_000

interface Bucket {
  /** Thousandths of a token by which the bucket is not full. */
  missing: number
  at: number
}

interface Rate {
  perSecond: number
  /** Tokens of a full bucket, which an owner may spend immediately after a pause. */
  burst: number
}

export class TokenBuckets {
  private readonly rate: Rate
  private readonly now: () => number
  private readonly buckets = new Map<string, Bucket>()

  /** @param now milliseconds of a monotonic clock */
  constructor(rate: Rate, now: () => number = () => performance.now()) {
    this.rate = rate
    this.now = now
  }

  /** Takes one token. Returns the whole tokens left, or the milliseconds until there is one; then it takes none. */
  take(owner: string): { remaining: number } | { waitMs: number } {
    const { burst, perSecond } = this.rate
    const bucket = this.refilled(owner)
    const over = bucket.missing + token - burst * token
    if (over > 0) return { waitMs: Math.ceil(over / perSecond) }
    bucket.missing += token
    return { remaining: Math.floor(burst - bucket.missing / token) }
  }

  /**
   * Takes tokens, also beyond the last one. A negative number gives tokens back.
   * Returns the milliseconds until the owner has paid its debt, or 0.
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
    // Deleted first, because a map keeps the order of insertion.
    buckets.delete(owner)
    if (buckets.size >= maxOwners) buckets.delete(buckets.keys().next().value!)
    buckets.set(owner, bucket)
    return bucket
  }
}
