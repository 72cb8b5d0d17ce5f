/** Checks a token bucket from outside: it took each token at some moment between a request and its response. */

export interface BucketAnswer {
  /** Milliseconds of one clock. */
  from: number
  to: number
  allowed: boolean
}

/** @param limit tokens a minute, and in a full bucket */
export function mistakesOf(history: BucketAnswer[], limit: number): { refused: number; letThrough: number } {
  const perMs = limit / 60_000
  const allowed = history.filter((each) => each.allowed).sort((a, b) => a.from - b.from)
  const refused = history.filter((each) => !each.allowed)
  return {
    refused: refused.filter((each) => surelyHadToken(each, allowed, limit, perMs)).length,
    letThrough: allowed.filter((_, last) => isTooMany(allowed, last, limit, perMs)).length,
  }
}

/** The emptiest that the bucket can have been: every token was taken as late as it may have been. */
function surelyHadToken(asked: BucketAnswer, allowed: BucketAnswer[], limit: number, perMs: number): boolean {
  let missing = 0
  let at = Number.NEGATIVE_INFINITY
  for (const { from, to } of allowed) {
    if (from > asked.to) break
    const taken = Math.max(at, Math.min(to, asked.to))
    missing = Math.max(0, missing - (taken - at) * perMs) + 1
    at = taken
  }
  missing = Math.max(0, missing - Math.max(0, asked.from - at) * perMs)
  return missing + 1 <= limit
}

/** More within some time than a full bucket and what came back in the longest that this time can have been. */
function isTooMany(allowed: BucketAnswer[], last: number, limit: number, perMs: number): boolean {
  const end = allowed[last]!.to
  return allowed
    .slice(0, last + 1)
    .some(({ from }, first) => last - first + 1 > limit + (end - from) * perMs + 1e-9)
}
