/**
 * The output of a command: both streams in the order in which they came, for any number of readers, each at its own
 * offset. An offset counts the bytes of both streams, so a reader that lost its connection goes on at the byte. The log
 * is bounded: it drops the oldest output, and tells a reader that comes too late how much that was.
 */

import type { OutputOffset } from '../../shared/contract/exec-events.ts'
import { limits } from '../../shared/contract/limits.ts'
import { firstIndex } from '../../shared/lib/first-index.ts'
import { wholeLength } from '../shell/output.ts'
import { Block, type StreamName } from './output-block.ts'

export type { StreamName } from './output-block.ts'

export type Item =
  | { kind: 'output'; stream: StreamName; bytes: Buffer; after: OutputOffset }
  /** These bytes were dropped before the reader got them. */
  | { kind: 'gap'; missed: OutputOffset; after: OutputOffset }
  | { kind: 'end'; after: OutputOffset }

const sum = ({ stdout, stderr }: OutputOffset): number => stdout + stderr

export class OutputLog {
  /** All output so far, whether it is still kept or not. */
  total: OutputOffset = { stdout: 0, stderr: 0 }
  private blocks: Block[] = []
  /** Bytes that blocks cost beyond their output, including dropped ones. */
  private overhead = 0
  private readonly readers = new Set<Reader>()
  private readonly wakers = new Set<() => void>()
  private readonly unfinished: Record<StreamName, Buffer> = {
    stdout: Buffer.alloc(0),
    stderr: Buffer.alloc(0),
  }
  private ended = false
  private waits = true
  /** Bytes that may be unread until the command waits: fewer where many commands of a sandbox are read at once. */
  private maxUnread = limits.unreadBytes

  /**
   * Takes output. Resolves when the command may go on: while a reader has much unread, the command waits. A character
   * that the chunk cuts in two is held until its rest comes.
   */
  async append(stream: StreamName, chunk: Buffer): Promise<void> {
    const before = this.unfinished[stream]
    const bytes = before.length === 0 ? chunk : Buffer.concat([before, chunk])
    const whole = wholeLength(bytes)
    this.unfinished[stream] = Buffer.from(bytes.subarray(whole))
    this.store(stream, bytes.subarray(0, whole))
    while (this.waits && this.unread() >= this.maxUnread) await this.change()
  }

  end(): void {
    for (const stream of ['stdout', 'stderr'] as const) {
      this.store(stream, this.unfinished[stream])
      this.unfinished[stream] = Buffer.alloc(0)
    }
    this.ended = true
    this.release()
  }

  /** From here on the command waits for no reader: it is being ended, and its last output must come. */
  release(): void {
    this.waits = false
    this.wake()
  }

  /**
   * The memory that kept output takes: its bytes, and where one stream follows the other. Output that alternates
   * between the streams byte by byte costs three times as much as other output, and less of it is kept.
   */
  get keptBytes(): number {
    const first = this.blocks[0]
    return first ? sum(this.total) - sum(first.at) + this.overhead - first.overheadBefore : 0
  }

  /** @param from the offset to begin at; the start of the output by default */
  read(from: OutputOffset = { stdout: 0, stderr: 0 }): Reader {
    const reader = new Reader(this, this.offsetNear(from))
    this.readers.add(reader)
    return reader
  }

  /** From where to where bytes of one stream are kept. */
  keptOf(stream: StreamName): { start: number; end: number } {
    return { start: this.blocks[0]?.at[stream] ?? this.total[stream], end: this.total[stream] }
  }

  /**
   * Bytes of one stream that are kept now, in pieces of at most 64 KiB. What has yet to be taken stays in memory, also
   * when newer output replaces it.
   * @returns for each piece how many bytes of memory it holds, and what copies it
   */
  pin(stream: StreamName, from: number, to: number): { cost: number; copy(): Buffer }[] {
    const after = (index: number) => this.blocks[index + 1]?.at[stream] ?? this.total[stream]
    const wanted = this.blocks.filter((block, index) => block.at[stream] < to && after(index) > from)
    return wanted.map((block) => ({
      cost: block.buffer.length,
      copy: () => block.bytesOf(stream, Math.max(0, from - block.at[stream]), to - block.at[stream]),
    }))
  }

  /** Drops the oldest output that no reader has yet to get: at least `bytes` of it, if there is so much. */
  dropRead(bytes: number): void {
    this.dropOldest(bytes, this.keptBytes - this.unread())
  }

  private dropOldest(bytes: number, most = Number.POSITIVE_INFINITY): void {
    for (let dropped = 0; dropped < bytes; ) {
      const oldest = this.blocks[0]
      if (!oldest || dropped + oldest.cost > most) break
      this.blocks.shift()
      dropped += oldest.cost
    }
  }

  private store(stream: StreamName, bytes: Buffer): void {
    if (bytes.length === 0) return
    for (let at = 0; at < bytes.length; ) {
      const block = this.roomyBlock()
      const before = block.overhead
      const taken = block.take(stream, bytes, at)
      this.overhead += block.overhead - before
      this.total[stream] += taken
      at += taken
    }
    const over = this.keptBytes - limits.keptBytes
    if (over > 0) this.dropOldest(over)
    this.wake()
  }

  /** The last block, while it has room: many small writes must not cost an object each. */
  private roomyBlock(): Block {
    const last = this.blocks.at(-1)
    if (last?.hasRoom) return last
    const fresh = new Block({ ...this.total }, this.overhead)
    this.blocks.push(fresh)
    return fresh
  }

  get isRead(): boolean {
    return this.readers.size > 0
  }

  /** Readers that are there: one that may come back is sent nothing. */
  get readerCount(): number {
    let count = 0
    for (const { isAbsent } of this.readers) if (!isAbsent) count++
    return count
  }

  limitUnread(bytes: number): void {
    this.maxUnread = bytes
  }

  /** Bytes that the slowest reader has yet to get. */
  private unread(): number {
    let most = 0
    for (const { offset } of this.readers) {
      const bytes = sum(this.total) - sum(offset)
      if (bytes === 0) continue
      const from = this.blocks[this.indexOf(sum(offset))]
      most = Math.max(most, bytes + this.overhead - (from?.overheadBefore ?? this.overhead))
    }
    return most
  }

  /** Resolves at the next output, end, read or departure. */
  change(): Promise<void> {
    return new Promise((resolve) => this.wakers.add(resolve))
  }

  wake(): void {
    const wakers = [...this.wakers]
    this.wakers.clear()
    for (const wake of wakers) wake()
  }

  forget(reader: Reader): void {
    this.readers.delete(reader)
    this.wake()
  }

  /** What a reader at this offset gets next; undefined when it has to wait. */
  itemAt(offset: OutputOffset, maxBytes: number): Item | undefined {
    const first = this.blocks[0]?.at ?? this.total
    if (sum(offset) < sum(first)) {
      const missed = {
        stdout: Math.max(0, first.stdout - offset.stdout),
        stderr: Math.max(0, first.stderr - offset.stderr),
      }
      return { kind: 'gap', missed, after: { ...first } }
    }
    const block = this.blocks[this.indexOf(sum(offset))]
    if (!block) return this.ended ? { kind: 'end', after: { ...this.total } } : undefined
    const { stream, bytes } = block.runFrom(sum(offset) - sum(block.at), maxBytes)
    const after = { ...offset }
    after[stream] += bytes.length
    return { kind: 'output', stream, bytes, after }
  }

  /** The true offset at which both streams together have so many bytes. A client that comes back may send any offset. */
  private offsetNear(from: OutputOffset): OutputOffset {
    if (sum(from) >= sum(this.total)) return { ...this.total }
    const block = this.blocks[this.indexOf(sum(from))]
    if (!block || sum(from) < sum(block.at)) return { ...from }
    return block.offsetAt(sum(from) - sum(block.at))
  }

  /** The index of the block that holds this byte; past the end when there is none yet. */
  private indexOf(before: number): number {
    const { blocks } = this
    return firstIndex(blocks.length, (index) => sum(blocks[index]!.at) + blocks[index]!.length > before)
  }
}

export class Reader {
  offset: OutputOffset
  /** Its client has left. For a while the command waits for it all the same. */
  isAbsent = false
  hasDisconnected = false
  private readonly log: OutputLog

  constructor(log: OutputLog, offset: OutputOffset) {
    this.log = log
    this.offset = offset
  }

  /** Resolves with the next item; with undefined after `end`, and once the reader has left. */
  async next(maxBytes = 32 * 1024): Promise<Item | undefined> {
    while (!this.hasDisconnected) {
      const item = this.ready(maxBytes)
      if (item) return item
      await this.log.change()
    }
    return undefined
  }

  /** The next item, or undefined when there is none yet. */
  ready(maxBytes = 32 * 1024): Item | undefined {
    const item = this.log.itemAt(this.offset, maxBytes)
    if (!item) return undefined
    this.offset = { ...item.after }
    this.log.wake()
    return item
  }

  /** From here on the command does not wait for this reader. */
  leave(): void {
    this.hasDisconnected = true
    this.log.forget(this)
  }
}
