/**
 * A block of output. It stores stdout and stderr in order of arrival, and the positions at which one stream
 * follows the other.
 */
import { firstIndex } from '../../shared/lib/first-index.ts'
import { wholeLength } from '../shell/output.ts'

export type StreamName = 'stdout' | 'stderr'

/** Maximum size of a block. It is chosen so that a position fits into the two bytes that record a switch. */
const blockBytes = 64 * 1024
const switchBytes = 2

const other = { stdout: 'stderr', stderr: 'stdout' } as const

export class Block {
  /** The stdout and stderr offsets at which the block begins. */
  readonly at: Record<StreamName, number>
  /** Total overhead of all earlier blocks, in bytes. */
  readonly overheadBefore: number
  buffer: Buffer = Buffer.allocUnsafeSlow(1024)
  length = 0
  private first: StreamName = 'stdout'
  /** Positions at which the output switches to the other stream. The first switch is away from `first`. */
  private switches = new Uint16Array(0)
  private switchCount = 0
  private isFull = false

  constructor(at: Record<StreamName, number>, overheadBefore: number) {
    this.at = at
    this.overheadBefore = overheadBefore
  }

  get hasRoom(): boolean {
    return !this.isFull
  }

  get overhead(): number {
    return this.switchCount * switchBytes
  }

  get cost(): number {
    return this.length + this.overhead
  }

  /**
   * Stores as many bytes as will fit, starting at index `from` of `bytes`, without splitting a UTF-8
   * character.
   * @returns number of bytes stored
   */
  take(stream: StreamName, bytes: Buffer, from: number): number {
    const room = blockBytes - this.length
    const rest = bytes.length - from
    const length = rest <= room ? rest : wholeLength(bytes.subarray(from, from + room))
    if (rest >= room) this.isFull = true
    if (length === 0) return 0
    this.makeRoom(length)
    this.switchTo(stream)
    bytes.copy(this.buffer, this.length, from, from + length)
    this.length += length
    return length
  }

  /**
   * Returns the bytes from a position up to the next switch. The bytes are not copied, because they never
   * change once stored.
   */
  runFrom(offset: number, maxBytes: number): { stream: StreamName; bytes: Buffer } {
    const index = this.switchAfter(offset)
    const end = index < this.switchCount ? this.switches[index]! : this.length
    const bytes = this.buffer.subarray(offset, Math.min(end, offset + maxBytes))
    const length = offset + bytes.length < end ? wholeLength(bytes) : bytes.length
    return { stream: this.streamAt(index), bytes: bytes.subarray(0, length) }
  }

  offsetAt(position: number): Record<StreamName, number> {
    const offset = { ...this.at }
    this.eachRun((stream, from, to) => {
      if (from < position) offset[stream] += Math.min(to, position) - from
    })
    return offset
  }

  /**
   * Returns a copy of one stream's bytes. `begin` and `end` count that stream's bytes from the start of the
   * block.
   * @param end exclusive; may be beyond the end of the block
   */
  bytesOf(wanted: StreamName, begin: number, end: number): Buffer {
    const copy = Buffer.allocUnsafe(Math.min(this.length, end) - begin)
    let seen = 0
    this.eachRun((stream, from, to) => {
      if (stream !== wanted) return
      const first = from + Math.max(0, begin - seen)
      const last = Math.min(to, from + end - seen)
      const at = seen - from - begin
      // For a few bytes, calling `copy` costs more than the loop.
      if (last - first > 32) this.buffer.copy(copy, first + at, first, last)
      else for (let index = first; index < last; index++) copy[index + at] = this.buffer[index]!
      seen += to - from
    })
    return copy.subarray(0, Math.min(seen, end) - begin)
  }

  private eachRun(take: (stream: StreamName, from: number, to: number) => void): void {
    let from = 0
    for (let index = 0; index <= this.switchCount; index++) {
      const to = index < this.switchCount ? this.switches[index]! : this.length
      take(this.streamAt(index), from, to)
      from = to
    }
  }

  private switchTo(stream: StreamName): void {
    if (this.length === 0) this.first = stream
    if (this.streamAt(this.switchCount) === stream) return
    if (this.switchCount === this.switches.length) {
      const larger = new Uint16Array(Math.max(16, 2 * this.switches.length))
      larger.set(this.switches)
      this.switches = larger
    }
    this.switches[this.switchCount++] = this.length
  }

  private makeRoom(length: number): void {
    const needed = this.length + length
    if (needed <= this.buffer.length) return
    const larger = Buffer.allocUnsafeSlow(Math.min(blockBytes, Math.max(needed, 4 * this.buffer.length)))
    this.buffer.copy(larger, 0, 0, this.length)
    this.buffer = larger
  }

  private streamAt(index: number): StreamName {
    return index % 2 === 0 ? this.first : other[this.first]
  }

  /** Returns the index of the first switch after a position. */
  private switchAfter(offset: number): number {
    return firstIndex(this.switchCount, (index) => this.switches[index]! > offset)
  }
}
