/**
 * Token buckets that one process counts by itself: for limits that need no exact figure over all processes, and that
 * must hold while Redis is away.
 */

/** With more owners than this within a minute, the one that asked the longest ago starts with a full bucket. */
const mostOwners = 10_000

/** One token, in the unit of {@link State.missing}: each millisecond gives back the limit's figure of units. */
const token = 60_000

interface LocalBucket {
  /** What is missing from a full bucket. */
  missing: number
  /** When that was so, in milliseconds. */
  ms: number
}

export class LocalBuckets {
  private readonly states = new Map<string, LocalBucket>()
  private readonly now: () => number

  constructor(now: () => number = () => performance.now()) {
    this.now = now
  }

  /**
   * Takes one token.
   * @param name bucket and owner
   * @param limit tokens a minute, which is also how many a full bucket holds
   * @returns whole tokens left, or the milliseconds until the next one comes
   */
  take(name: string, limit: number): { remaining: number } | { waitMs: number } {
    const { states } = this
    const ms = this.now()
    const before = states.get(name) ?? { missing: 0, ms }
    const missing = Math.max(0, before.missing - (ms - before.ms) * limit)
    const over = missing + token - limit * token
    // Deleted first, because a map keeps the order of insertion.
    states.delete(name)
    if (states.size >= mostOwners) states.delete(states.keys().next().value!)
    states.set(name, { missing: over > 0 ? missing : missing + token, ms })
    return over > 0
      ? { waitMs: Math.ceil(over / limit) }
      : { remaining: Math.floor(limit - missing / token) - 1 }
  }
}
