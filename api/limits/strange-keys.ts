/**
 * Keys that were not good lately cost a query each, so an address may ask for so many a minute. A process counts this
 * by itself: it guards the database from the requests of that process.
 */
import { Problem } from '../../shared/platform/problem.ts'
import { LocalBuckets } from './local-buckets.ts'

/** A minute. A client has one key, or a few; many clients behind one address each need one look at first. */
const most = 300

export class StrangeKeys {
  private readonly buckets = new LocalBuckets()

  /** @throws {Problem} `rate_limited` */
  take(address: string): void {
    const taken = this.buckets.take(address, most)
    if (!('waitMs' in taken)) return
    throw new Problem(
      'rate_limited',
      `At most ${most} API keys a minute that were not used here before may come from one address.`,
      { retryAfterSeconds: Math.max(1, Math.ceil(taken.waitMs / 1000)) },
    )
  }
}
