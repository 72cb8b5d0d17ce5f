/** The output rate limit: an account that prints more waits, and leaves the processor of the worker to others. */
import { TokenBuckets } from '../../shared/lib/token-buckets.ts'

const mebibyte = 1024 * 1024
/** A chunk counts as so many bytes more than it has. */
const chunkBytes = 16 * 1024
/** A byte counts as so many more for each reader: it is encoded, sent, and passed on by the API. */
const perReader = 3

export class OutputRate {
  private readonly buckets = new TokenBuckets({ perSecond: 64 * mebibyte, burst: 4 * mebibyte })

  /** Counts a chunk of output. Returns the milliseconds to wait before more is read, mostly 0. */
  spend(accountId: string, bytes: number, readers: number): number {
    return this.buckets.spend(accountId, chunkBytes + bytes * (1 + perReader * readers))
  }
}
