import { isUtf8 } from 'node:buffer'
import { GrowingBuffer } from '../../shared/lib/growing-buffer.ts'

/** Keeps the start and the end of a stream, and drops the middle if the stream exceeds a limit. */
export class BoundedOutput {
  /** Size of the stream, including dropped bytes. */
  bytes = 0
  private readonly half: number
  /** Start of the stream, copied because slices would keep their chunks in memory. */
  private readonly head: GrowingBuffer
  private tail: Buffer | undefined
  private tailBytes = 0

  /** @param limit maximum number of bytes to keep, at least 2 */
  constructor(limit: number) {
    this.half = Math.floor(limit / 2)
    this.head = new GrowingBuffer(this.half)
  }

  push(chunk: Buffer): void {
    this.bytes += chunk.length
    const toHead = this.head.push(chunk)
    if (toHead < chunk.length) this.pushTail(chunk.subarray(toHead))
  }

  get keptBytes(): number {
    return this.head.length + Math.min(this.tailBytes, this.half)
  }

  drop(): void {
    this.head.clear()
    this.tail = undefined
    this.tailBytes = 0
  }

  get truncated(): boolean {
    return this.bytes > this.keptBytes
  }

  /** Returns the retained bytes. If bytes were dropped, a line with their number takes their place. */
  toBuffer(): Buffer {
    const [head, tail] = this.parts()
    if (!tail) return head
    const dropped = this.bytes - head.length - tail.length
    return Buffer.concat([head, Buffer.from(`\n[... ${dropped} bytes left out ...]\n`), tail])
  }

  get isText(): boolean {
    return this.parts().every((part: Buffer) => isUtf8(part))
  }

  private parts(): [Buffer] | [Buffer, Buffer] {
    const head = this.head.bytes
    const tail = this.tailBuffer()
    if (!this.truncated) return [Buffer.concat([head, tail])]
    return [wholeCharacters(head), withoutContinuation(tail)]
  }

  private pushTail(chunk: Buffer) {
    this.tail ??= Buffer.allocUnsafeSlow(this.half)
    // Only the end of a chunk that is larger than the ring is copied.
    let from = Math.max(0, chunk.length - this.half)
    this.tailBytes += from
    while (from < chunk.length) {
      const copied = chunk.copy(this.tail, this.tailBytes % this.half, from)
      from += copied
      this.tailBytes += copied
    }
  }

  private tailBuffer(): Buffer {
    if (!this.tail) return Buffer.alloc(0)
    if (this.tailBytes <= this.half) return this.tail.subarray(0, this.tailBytes)
    const oldest = this.tailBytes % this.half
    return Buffer.concat([this.tail.subarray(oldest), this.tail.subarray(0, oldest)])
  }
}

/** Drops a partial UTF-8 character at the start. */
function withoutContinuation(bytes: Buffer): Buffer {
  let start = 0
  while (start < 3 && (bytes[start]! & 0xc0) === 0x80) start++
  return bytes.subarray(start)
}

/** Drops a partial UTF-8 character at the end. */
export const wholeCharacters = (bytes: Buffer): Buffer => bytes.subarray(0, wholeLength(bytes))

/** Returns the length without a partial UTF-8 character at the end. */
export function wholeLength(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back]!
    if ((byte & 0xc0) === 0x80) continue
    const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
    return needed > back ? bytes.length - back : bytes.length
  }
  return bytes.length
}
