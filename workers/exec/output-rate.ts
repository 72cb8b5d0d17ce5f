/** Limits the output rate of each account, so that the worker's CPU remains available to other accounts. */
import { TokenBuckets } from '../../shared/lib/token-buckets.ts'

const mebibyte = 1024 * 1024
/** The fixed cost of a chunk, in bytes. */
const chunkBytes = 16 * 1024
/** The additional cost of a byte for each reader: it is encoded, sent, and forwarded by the API. */
const perReader = 3

export class OutputRate {
  private readonly buckets = new TokenBuckets({ perSecond: 64 * mebibyte, burst: 4 * mebibyte })

  /** Counts a chunk of output. @returns milliseconds to wait before reading more, usually 0 */
  spend(accountId: string, bytes: number, readers: number): number {
    return this.buckets.spend(accountId, chunkBytes + bytes * (1 + perReader * readers))
  }
}
