/**
 * Stores a command's output for any number of readers.
 * An offset counts the bytes of each stream, so a reader that reconnects continues at exactly the next byte.
 * A reader that missed dropped output receives a `gap` item with the number of missed bytes.
 */
import type { OutputOffset } from '../../shared/contract/exec-events.ts'
import { limits } from '../../shared/contract/limits.ts'
import { firstIndex } from '../../shared/lib/first-index.ts'
import { wholeLength } from '../shell/output.ts'
import { Block, type StreamName } from './output-block.ts'

export type { StreamName } from './output-block.ts'

export type Item =
  | { kind: 'output'; stream: StreamName; bytes: Buffer; after: OutputOffset }
  | { kind: 'gap'; missed: OutputOffset; after: OutputOffset }
  | { kind: 'end'; after: OutputOffset }

const sum = ({ stdout, stderr }: OutputOffset): number => stdout + stderr

export class OutputLog {
  /** Size of all output, including dropped output. */
  total: OutputOffset = { stdout: 0, stderr: 0 }
  private blocks: Block[] = []
  /** Bytes used to record the stream switches in all blocks, including dropped blocks. */
  private overhead = 0
  private readonly readers = new Set<Reader>()
  private readonly wakers = new Set<() => void>()
  private readonly unfinished: Record<StreamName, Buffer> = {
    stdout: Buffer.alloc(0),
    stderr: Buffer.alloc(0),
  }
  private ended = false
  private waits = true
  /** Number of unread bytes at which the command blocks. */
  maxUnread: number = limits.unreadBytes

  /**
   * Appends output, but holds back a partial UTF-8 character at the end. Resolves once the slowest reader has
   * fewer than `maxUnread` unread bytes; until then, the caller must pause the command.
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

  /**
   * Stops waiting for slow readers, so that a command that is being stopped can deliver its remaining output.
   */
  release(): void {
    this.waits = false
    this.wake()
  }

  /** Memory used by the retained output, including 2 bytes for each switch between streams. */
  get keptBytes(): number {
    const first = this.blocks[0]
    return first ? sum(this.total) - sum(first.at) + this.overhead - first.overheadBefore : 0
  }

  read(from: OutputOffset = { stdout: 0, stderr: 0 }): Reader {
    const reader = new Reader(this, from)
    this.readers.add(reader)
    return reader
  }

  keptOf(stream: StreamName): { start: number; end: number } {
    return { start: this.blocks[0]?.at[stream] ?? this.total[stream], end: this.total[stream] }
  }

  /**
   * Returns the retained bytes of one stream in chunks of at most 64 KiB. A chunk stays in memory while it is
   * referenced, even if the log drops its output.
   * @returns for each chunk, its memory in bytes and a function that copies its content
   */
  pin(stream: StreamName, from: number, to: number): { cost: number; copy(): Buffer }[] {
    const after = (index: number) => this.blocks[index + 1]?.at[stream] ?? this.total[stream]
    const wanted = this.blocks.filter((block, index) => block.at[stream] < to && after(index) > from)
    return wanted.map((block) => ({
      cost: block.length,
      copy: () => block.bytesOf(stream, Math.max(0, from - block.at[stream]), to - block.at[stream]),
    }))
  }

  /** Drops `bytes` or slightly more of the oldest output, but only output that all readers have received. */
  dropRead(bytes: number): void {
    this.dropOldest(bytes, this.keptBytes - this.unread())
  }

  private dropOldest(bytes: number, max = Number.POSITIVE_INFINITY): void {
    for (let dropped = 0; dropped < bytes; ) {
      const oldest = this.blocks[0]
      if (!oldest || dropped + oldest.cost > max) break
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

  private roomyBlock(): Block {
    const last = this.blocks.at(-1)
    if (last && !last.isFull) return last
    const fresh = new Block({ ...this.total }, this.overhead)
    this.blocks.push(fresh)
    return fresh
  }

  get isRead(): boolean {
    return this.readers.size > 0
  }

  get readerCount(): number {
    return [...this.readers].filter(({ isAbsent }) => !isAbsent).length
  }

  /** Unread bytes of the slowest reader, including the bytes that record stream switches. */
  private unread(): number {
    let max = 0
    for (const { offset } of this.readers) {
      const bytes = sum(this.total) - sum(offset)
      if (bytes === 0) continue
      const from = this.blocks[this.indexOf(sum(offset))]
      max = Math.max(max, bytes + this.overhead - (from?.overheadBefore ?? this.overhead))
    }
    return max
  }

  /** Resolves at the next change: when output is stored or read, a reader leaves, or the output ends. */
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

  /** Returns the output, gap or end that follows an offset, or undefined if nothing has arrived there yet. */
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

  /**
   * Returns the index of the block that contains the byte at `offset` in the combined output of both streams,
   * or the number of blocks if that byte has not arrived yet.
   */
  private indexOf(offset: number): number {
    const { blocks } = this
    return firstIndex(blocks.length, (index) => sum(blocks[index]!.at) + blocks[index]!.length > offset)
  }
}

export class Reader {
  offset: OutputOffset
  /** Whether the client has disconnected. Until its grace period ends, unread output blocks the command. */
  isAbsent = false
  hasDisconnected = false
  private readonly log: OutputLog

  constructor(log: OutputLog, offset: OutputOffset) {
    this.log = log
    this.offset = offset
  }

  /** Resolves with the next output, gap or end, or with undefined after a call to `leave`. */
  async next(maxBytes = 32 * 1024): Promise<Item | undefined> {
    while (!this.hasDisconnected) {
      const item = this.ready(maxBytes)
      if (item) return item
      await this.log.change()
    }
    return undefined
  }

  ready(maxBytes = 32 * 1024): Item | undefined {
    const item = this.log.itemAt(this.offset, maxBytes)
    if (!item) return undefined
    this.offset = { ...item.after }
    this.log.wake()
    return item
  }

  leave(): void {
    this.hasDisconnected = true
    this.log.forget(this)
  }
}
