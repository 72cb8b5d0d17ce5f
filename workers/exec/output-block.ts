/**
 * A block of a command's output: stdout and stderr in order of arrival, and the positions at which the output
 * switches from one stream to the other.
 */
import { firstIndex } from '../../shared/lib/first-index.ts'
import { GrowingBuffer } from '../../shared/lib/growing-buffer.ts'
import { wholeLength } from '../shell/output.ts'

export type StreamName = 'stdout' | 'stderr'

/**
 * Size of a block, chosen so that a position in it fits into the two bytes that record a switch between
 * stdout and stderr.
 */
const blockBytes = 64 * 1024
const switchBytes = 2

const other = { stdout: 'stderr', stderr: 'stdout' } as const

export class Block {
  /** Offset of each stream at the start of the block. */
  readonly at: Record<StreamName, number>
  /** Bytes used to record the stream switches in all earlier blocks. */
  readonly overheadBefore: number
  private readonly content = new GrowingBuffer(blockBytes)
  private first: StreamName = 'stdout'
  /** Positions at which the output switches streams. Before the first switch, it belongs to `first`. */
  private switches = new Uint16Array(0)
  private switchCount = 0
  isFull = false

  constructor(at: Record<StreamName, number>, overheadBefore: number) {
    this.at = at
    this.overheadBefore = overheadBefore
  }

  get length(): number {
    return this.content.length
  }

  get overhead(): number {
    return this.switchCount * switchBytes
  }

  get cost(): number {
    return this.length + this.overhead
  }

  /**
   * Stores as many bytes as fit, starting at index `from` of `bytes`, without splitting a UTF-8 character.
   * @returns the number of bytes stored
   */
  take(stream: StreamName, bytes: Buffer, from: number): number {
    const room = blockBytes - this.length
    const rest = bytes.length - from
    const length = rest <= room ? rest : wholeLength(bytes.subarray(from, from + room))
    if (rest >= room) this.isFull = true
    if (length === 0) return 0
    this.switchTo(stream)
    return this.content.push(bytes.subarray(from, from + length))
  }

  /**
   * Returns the bytes from a position up to the next switch between stdout and stderr. Does not copy them,
   * because stored bytes never change.
   */
  runFrom(offset: number, maxBytes: number): { stream: StreamName; bytes: Buffer } {
    const index = this.switchAfter(offset)
    const end = index < this.switchCount ? this.switches[index]! : this.length
    const bytes = this.content.bytes.subarray(offset, Math.min(end, offset + maxBytes))
    const length = offset + bytes.length < end ? wholeLength(bytes) : bytes.length
    return { stream: this.streamAt(index), bytes: bytes.subarray(0, length) }
  }

  /**
   * Returns a copy of a range of one stream's bytes. `begin` and `end` count only that stream's bytes in this
   * block.
   * @param end exclusive; may be beyond the end of the block
   */
  bytesOf(wanted: StreamName, begin: number, end: number): Buffer {
    const copy = Buffer.allocUnsafe(Math.min(this.length, end) - begin)
    const stored = this.content.bytes
    let seen = 0
    this.eachRun((stream, from, to) => {
      if (stream !== wanted) return
      const first = from + Math.max(0, begin - seen)
      const last = Math.min(to, from + end - seen)
      if (first < last) stored.copy(copy, first + seen - from - begin, first, last)
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

  private streamAt(index: number): StreamName {
    return index % 2 === 0 ? this.first : other[this.first]
  }

  private switchAfter(offset: number): number {
    return firstIndex(this.switchCount, (index) => this.switches[index]! > offset)
  }
}
