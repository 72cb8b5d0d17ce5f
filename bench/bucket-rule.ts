/**
 * Checks a token bucket from the client's side. Each token was taken at an unknown time before its response.
 */

export interface BucketAnswer {
  /** Times of the request and the response in milliseconds, from the same clock. */
  from: number
  to: number
  allowed: boolean
}

/** @param limit tokens per minute, which is also the bucket's capacity */
export function mistakesOf(history: BucketAnswer[], limit: number): { refused: number; letThrough: number } {
  const perMs = limit / 60_000
  const allowed = history.filter((each) => each.allowed).sort((a, b) => a.from - b.from)
  const refused = history.filter((each) => !each.allowed)
  return {
    refused: refused.filter((each) => surelyHadToken(each, allowed, limit, perMs)).length,
    letThrough: allowed.filter((_, last) => isTooMany(allowed, last, limit, perMs)).length,
  }
}

/** True if the bucket had a token even if all earlier tokens were taken as late as possible. */
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

/** True if some period allowed more requests than a full bucket plus the maximum refill. */
function isTooMany(allowed: BucketAnswer[], last: number, limit: number, perMs: number): boolean {
  const end = allowed[last]!.to
  return allowed
    .slice(0, last + 1)
    .some(({ from }, first) => last - first + 1 > limit + (end - from) * perMs + 1e-9)
}
