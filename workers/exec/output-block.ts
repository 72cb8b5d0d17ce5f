/** A block of output: the bytes of both streams in the order in which they came, and where one follows the other. */
import { firstIndex } from '../../shared/lib/first-index.ts'
import { wholeLength } from '../shell/output.ts'

export type StreamName = 'stdout' | 'stderr'

/** Bytes: a position in a block fits into the two bytes of a turn. */
const blockBytes = 64 * 1024
const turnBytes = 2

const other = { stdout: 'stderr', stderr: 'stdout' } as const

export class Block {
  /** Where it begins. */
  readonly at: Record<StreamName, number>
  /** Bytes that all blocks before cost beyond their output. */
  readonly overheadBefore: number
  buffer: Buffer = Buffer.allocUnsafeSlow(1024)
  length = 0
  private first: StreamName = 'stdout'
  /** Where the bytes of the other stream begin, then those of the first again, and so on. */
  private turns = new Uint16Array(0)
  private turnCount = 0
  private isFull = false

  constructor(at: Record<StreamName, number>, overheadBefore: number) {
    this.at = at
    this.overheadBefore = overheadBefore
  }

  get hasRoom(): boolean {
    return !this.isFull
  }

  get overhead(): number {
    return this.turnCount * turnBytes
  }

  get cost(): number {
    return this.length + this.overhead
  }

  /** @returns how many of these bytes, from `from` on, it has taken; no character is cut in two */
  take(stream: StreamName, bytes: Buffer, from: number): number {
    const room = blockBytes - this.length
    const rest = bytes.length - from
    const length = rest <= room ? rest : wholeLength(bytes.subarray(from, from + room))
    if (rest >= room) this.isFull = true
    if (length === 0) return 0
    this.makeRoom(length)
    this.turnTo(stream)
    bytes.copy(this.buffer, this.length, from, from + length)
    this.length += length
    return length
  }

  /** The bytes at this offset, up to where the other stream follows. Written bytes never change, so they are not copied. */
  runFrom(offset: number, maxBytes: number): { stream: StreamName; bytes: Buffer } {
    const turn = this.turnAfter(offset)
    const end = turn < this.turnCount ? this.turns[turn]! : this.length
    const bytes = this.buffer.subarray(offset, Math.min(end, offset + maxBytes))
    const length = offset + bytes.length < end ? wholeLength(bytes) : bytes.length
    return { stream: this.streamAt(turn), bytes: bytes.subarray(0, length) }
  }

  offsetAt(position: number): Record<StreamName, number> {
    const offset = { ...this.at }
    this.eachRun((stream, from, to) => {
      if (from < position) offset[stream] += Math.min(to, position) - from
    })
    return offset
  }

  /** A copy of the bytes of one stream, counted from where the block begins. @param end exclusive; may lie behind it */
  bytesOf(wanted: StreamName, begin: number, end: number): Buffer {
    const copy = Buffer.allocUnsafe(Math.min(this.length, end) - begin)
    let seen = 0
    this.eachRun((stream, from, to) => {
      if (stream !== wanted) return
      const first = from + Math.max(0, begin - seen)
      const last = Math.min(to, from + end - seen)
      const at = seen - from - begin
      // For a few bytes the call costs more than the copy.
      if (last - first > 32) this.buffer.copy(copy, first + at, first, last)
      else for (let index = first; index < last; index++) copy[index + at] = this.buffer[index]!
      seen += to - from
    })
    return copy.subarray(0, Math.min(seen, end) - begin)
  }

  private eachRun(take: (stream: StreamName, from: number, to: number) => void): void {
    let from = 0
    for (let turn = 0; turn <= this.turnCount; turn++) {
      const to = turn < this.turnCount ? this.turns[turn]! : this.length
      take(this.streamAt(turn), from, to)
      from = to
    }
  }

  private turnTo(stream: StreamName): void {
    if (this.length === 0) this.first = stream
    if (this.streamAt(this.turnCount) === stream) return
    if (this.turnCount === this.turns.length) {
      const larger = new Uint16Array(Math.max(16, 2 * this.turns.length))
      larger.set(this.turns)
      this.turns = larger
    }
    this.turns[this.turnCount++] = this.length
  }

  private makeRoom(length: number): void {
    const needed = this.length + length
    if (needed <= this.buffer.length) return
    const larger = Buffer.allocUnsafeSlow(Math.min(blockBytes, Math.max(needed, 4 * this.buffer.length)))
    this.buffer.copy(larger, 0, 0, this.length)
    this.buffer = larger
  }

  private streamAt(turn: number): StreamName {
    return turn % 2 === 0 ? this.first : other[this.first]
  }

  /** How many turns are at or before this offset. */
  private turnAfter(offset: number): number {
    return firstIndex(this.turnCount, (turn) => this.turns[turn]! > offset)
  }
}
