/** Collects bytes that come in pieces of any size, in one buffer of at most twice their size. */
export class GrowingBuffer {
  length = 0
  private readonly most: number
  private buffer: Buffer = Buffer.alloc(0)

  /** @param most bytes that it takes at most */
  constructor(most = Number.POSITIVE_INFINITY) {
    this.most = most
  }

  /** @returns how many of them it took */
  push(chunk: Uint8Array): number {
    const taken = Math.min(chunk.length, this.most - this.length)
    if (this.length + taken > this.buffer.length) this.grow(this.length + taken)
    this.buffer.set(taken === chunk.length ? chunk : chunk.subarray(0, taken), this.length)
    this.length += taken
    return taken
  }

  get bytes(): Buffer {
    return this.buffer.subarray(0, this.length)
  }

  clear(): void {
    this.buffer = Buffer.alloc(0)
    this.length = 0
  }

  private grow(needed: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.min(this.most, Math.max(needed, 2 * this.buffer.length)))
    this.buffer.copy(larger, 0, 0, this.length)
    this.buffer = larger
  }
}
