/**
 * Token buckets that one process counts for itself: for what needs no exact figure over all of them, and
 * must go on, or stop somebody, while Redis is away.
 */

/** More owners than that within a minute, and the one who was asked about the longest ago starts anew. */
const mostOwners = 10_000

/** Of a token, in the unit of {@link LocalBucket.missing}: each millisecond brings back the limit's figure of it. */
const token = 60_000

interface LocalBucket {
  /** From a full bucket. */
  missing: number
  /** Of the moment that this is from. */
  ms: number
}

export interface LocalBuckets {
  /**
   * Takes one token.
   * @param name bucket and owner
   * @param limit tokens a minute, and in a full bucket
   * @returns whole tokens left, or how long until the next comes
   */
  take(name: string, limit: number): { remaining: number } | { waitMs: number }
}

export function openLocalBuckets(now: () => number = () => performance.now()): LocalBuckets {
  const states = new Map<string, LocalBucket>()
  return {
    take(name, limit) {
      const ms = now()
      const before = states.get(name) ?? { missing: 0, ms }
      const missing = Math.max(0, before.missing - (ms - before.ms) * limit)
      const over = missing + token - limit * token
      // Taken out first: a map keeps the order in which its entries came.
      states.delete(name)
      if (states.size >= mostOwners) states.delete(states.keys().next().value!)
      states.set(name, { missing: over > 0 ? missing : missing + token, ms })
      return over > 0
        ? { waitMs: Math.ceil(over / limit) }
        : { remaining: Math.floor(limit - missing / token) - 1 }
    },
  }
}
