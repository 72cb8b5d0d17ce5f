/** A limit on input whose handling costs more than its bytes: many small pieces, such as HTTP chunks of one byte. */

const maxExcess = 1_024
/** One piece of this many bytes is never in excess. */
const paidBytes = 16
/** A person who types, or a program that prints short lines, stays below this rate indefinitely. */
const paidPerSecond = 200

export class PieceLimit {
  private excess = 0
  private countedAt: number

  /** @param now milliseconds on a monotonic clock */
  constructor(now = performance.now()) {
    this.countedAt = now
  }

  /**
   * Counts one piece. Every 16 bytes and every 5 ms pay for one.
   * @returns whether more than 1,024 pieces remain unpaid
   */
  isExceededBy(bytes: number, now = performance.now()): boolean {
    const paid = bytes / paidBytes + ((now - this.countedAt) / 1000) * paidPerSecond
    this.countedAt = now
    this.excess = Math.max(0, this.excess + 1 - paid)
    return this.excess > maxExcess
  }
}
