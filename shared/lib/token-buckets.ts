/** A token bucket per owner, whose owners may go into debt and then wait. */

interface Bucket {
  /** Below zero the owner is in debt. */
  left: number
  at: number
}

export interface Rate {
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

  /** Takes tokens, also beyond the last one. Returns the milliseconds until the owner has paid them back, or 0. */
  spend(owner: string, tokens: number): number {
    const bucket = this.buckets.get(owner) ?? this.add(owner)
    this.refill(bucket)
    bucket.left -= tokens
    return bucket.left < 0 ? Math.ceil((-bucket.left * 1000) / this.rate.perSecond) : 0
  }

  private add(owner: string): Bucket {
    for (const [other, bucket] of this.buckets) {
      this.refill(bucket)
      if (bucket.left === this.rate.burst) this.buckets.delete(other)
    }
    const bucket = { left: this.rate.burst, at: this.now() }
    this.buckets.set(owner, bucket)
    return bucket
  }

  private refill(bucket: Bucket): void {
    const at = this.now()
    const earned = ((at - bucket.at) * this.rate.perSecond) / 1000
    bucket.left = Math.min(this.rate.burst, bucket.left + earned)
    bucket.at = at
  }
}
