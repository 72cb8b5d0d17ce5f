/** A buffer that grows as bytes are added. Its capacity is at most twice the size of its content. */
export class GrowingBuffer {
  length = 0
  private readonly maxBytes: number
  private buffer: Buffer = Buffer.alloc(0)

  constructor(maxBytes = Number.POSITIVE_INFINITY) {
    this.maxBytes = maxBytes
  }

  push(chunk: Uint8Array): number {
    const taken = Math.min(chunk.length, this.maxBytes - this.length)
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
    const larger = Buffer.allocUnsafeSlow(Math.min(this.maxBytes, Math.max(needed, 2 * this.buffer.length)))
    this.buffer.copy(larger, 0, 0, this.length)
    this.buffer = larger
  }
}
