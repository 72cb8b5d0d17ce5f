/** Limits the output rate of each account, so that one account cannot use up the worker's CPU. */
import { TokenBuckets } from '../../shared/lib/token-buckets.ts'

const mebibyte = 1024 * 1024
/** Fixed cost of a chunk in bytes, in addition to its size. */
const chunkBytes = 16 * 1024
/** Additional cost of each byte per reader, for encoding, sending, and forwarding by the API. */
const perReader = 3

export class OutputRate {
  private readonly buckets = new TokenBuckets({ perSecond: 64 * mebibyte, burst: 4 * mebibyte })

  /**
   * Counts a chunk of output toward the account's output rate.
   * @returns how long to wait before reading more output, in milliseconds; usually 0
   */
  spend(accountId: string, bytes: number, readers: number): number {
    return this.buckets.spend(accountId, chunkBytes + bytes * (1 + perReader * readers))
  }
}
