/**
 * What a command printed, both streams in the order in which it came, for any number of readers at
 * their own places. A place is the pair of both streams' offsets, so a reader that lost its
 * connection goes on at the byte. Bounded: the oldest is dropped, and a reader that is too late is told.
 */
import { limits } from '../../shared/contract/limits.ts'
import { wholeLength } from '../shell/output.ts'

export type StreamName = 'stdout' | 'stderr'

/** How many bytes of each stream come before. */
export interface Place {
  stdout: number
  stderr: number
}

export type Item =
  | { kind: 'output'; stream: StreamName; bytes: Buffer; after: Place }
  /** These bytes were dropped before they could be read. */
  | { kind: 'gap'; missed: Place; after: Place }
  | { kind: 'end'; after: Place }

interface Chunk {
  stream: StreamName
  /** Where it begins. */
  at: Place
  buffer: Buffer
  length: number
}

const chunkBytes = 64 * 1024
const mostSpare = 16
const sum = ({ stdout, stderr }: Place): number => stdout + stderr

export class OutputLog {
  /** All that came, whether it is still kept or not. */
  total: Place = { stdout: 0, stderr: 0 }
  keptBytes = 0
  private chunks: Chunk[] = []
  /** Of chunks that were dropped: a command that prints much leaves less for V8 to collect. */
  private readonly spare: Buffer[] = []
  private readonly readers = new Set<Reader>()
  private readonly wakers = new Set<() => void>()
  private readonly unfinished: Record<StreamName, Buffer> = {
    stdout: Buffer.alloc(0),
    stderr: Buffer.alloc(0),
  }
  private ended = false
  private waits = true
  /** How much may be unread until the command waits: less where many of a sandbox are read at once. */
  private mostUnread = limits.unreadBytes

  /**
   * Takes output. Resolves when the command may go on: while a reader has much unread, it waits.
   * A character that the chunk cuts in two is held until its rest comes.
   */
  async append(stream: StreamName, chunk: Buffer): Promise<void> {
    const before = this.unfinished[stream]
    const bytes = before.length === 0 ? chunk : Buffer.concat([before, chunk])
    const whole = wholeLength(bytes)
    this.unfinished[stream] = Buffer.from(bytes.subarray(whole))
    this.store(stream, bytes.subarray(0, whole))
    while (this.waits && this.unread() >= this.mostUnread) await this.change()
  }

  /** No more comes. */
  end(): void {
    for (const stream of ['stdout', 'stderr'] as const) {
      this.store(stream, this.unfinished[stream])
      this.unfinished[stream] = Buffer.alloc(0)
    }
    this.ended = true
    this.release()
  }

  /** From here on the command waits for no reader: it is being ended, and its last words must come. */
  release(): void {
    this.waits = false
    this.wake()
  }

  /** @param from goes on there; the start of what was printed unless told */
  read(from: Place = { stdout: 0, stderr: 0 }): Reader {
    const reader = new Reader(this, { ...from })
    this.readers.add(reader)
    return reader
  }

  /** The bytes of one stream that are kept: where they begin, and the bytes. */
  keptOf(stream: StreamName): { start: number; bytes: Buffer } {
    const chunks = this.chunks.filter((chunk) => chunk.stream === stream)
    const start = chunks[0]?.at[stream] ?? this.total[stream]
    return { start, bytes: Buffer.concat(chunks.map(({ buffer, length }) => buffer.subarray(0, length))) }
  }

  /** Lets go of the oldest that no reader is yet to get, at least `bytes` of it if there is so much. */
  dropRead(bytes: number): void {
    this.dropOldest(bytes, this.keptBytes - this.unread())
  }

  private dropOldest(bytes: number, most = Number.POSITIVE_INFINITY): void {
    let dropped = 0
    while (dropped < bytes) {
      const oldest = this.chunks[0]
      if (!oldest || dropped + oldest.length > most) break
      this.chunks.shift()
      dropped += oldest.length
      // A reader may hold a part of it, which must not change.
      const isFree = this.readers.size === 0 && oldest.buffer.length === chunkBytes
      if (isFree && this.spare.length < mostSpare) this.spare.push(oldest.buffer)
    }
    this.keptBytes -= dropped
  }

  private store(stream: StreamName, bytes: Buffer): void {
    for (let at = 0; at < bytes.length; ) {
      const chunk = this.chunkFor(stream)
      const copied = bytes.copy(chunk.buffer, chunk.length, at)
      chunk.length += copied
      at += copied
      this.total[stream] += copied
      this.keptBytes += copied
    }
    if (bytes.length === 0) return
    if (this.keptBytes > limits.keptBytes) this.dropOldest(this.keptBytes - limits.keptBytes)
    this.wake()
  }

  /** The last chunk while it has room: many small writes must not cost an object each. */
  private chunkFor(stream: StreamName): Chunk {
    const last = this.chunks.at(-1)
    if (last?.stream === stream && last.length < chunkBytes) {
      if (last.length === last.buffer.length) {
        const larger = Buffer.allocUnsafeSlow(Math.min(chunkBytes, 4 * last.length))
        last.buffer.copy(larger)
        last.buffer = larger
      }
      return last
    }
    const buffer = this.spare.pop() ?? Buffer.allocUnsafeSlow(1024)
    const fresh = { stream, at: { ...this.total }, buffer, length: 0 }
    this.chunks.push(fresh)
    return fresh
  }

  get isRead(): boolean {
    return this.readers.size > 0
  }

  limitUnread(bytes: number): void {
    this.mostUnread = bytes
  }

  /** By the reader that is the furthest behind. */
  private unread(): number {
    let most = 0
    for (const reader of this.readers) most = Math.max(most, sum(this.total) - sum(reader.place))
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

  /** What a reader at this place gets next; undefined when it has to wait. */
  itemAt(place: Place, mostBytes: number): Item | undefined {
    const first = this.chunks[0]?.at ?? this.total
    if (sum(place) < sum(first)) {
      const missed = { stdout: first.stdout - place.stdout, stderr: first.stderr - place.stderr }
      return { kind: 'gap', missed, after: { ...first } }
    }
    const chunk = this.chunks[this.indexOf(sum(place))]
    if (!chunk) return this.ended ? { kind: 'end', after: { ...this.total } } : undefined
    const offset = sum(place) - sum(chunk.at)
    const available = chunk.buffer.subarray(offset, Math.min(chunk.length, offset + mostBytes))
    const length = offset + available.length < chunk.length ? wholeLength(available) : available.length
    const after = { ...chunk.at }
    after[chunk.stream] += offset + length
    // Written bytes never change, so they are handed out without a copy.
    return { kind: 'output', stream: chunk.stream, bytes: available.subarray(0, length), after }
  }

  /** The chunk that holds the byte behind this many; past the end when there is none yet. */
  private indexOf(before: number): number {
    let [low, high] = [0, this.chunks.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      const chunk = this.chunks[middle]!
      if (sum(chunk.at) + chunk.length <= before) low = middle + 1
      else high = middle
    }
    return low
  }
}

export class Reader {
  place: Place
  hasLeft = false
  private readonly log: OutputLog

  constructor(log: OutputLog, place: Place) {
    this.log = log
    this.place = place
  }

  /** The next item; after `end`, and once it has left, undefined. */
  async next(mostBytes = 32 * 1024): Promise<Item | undefined> {
    while (!this.hasLeft) {
      const item = this.log.itemAt(this.place, mostBytes)
      if (item) {
        this.place = { ...item.after }
        this.log.wake()
        return item
      }
      await this.log.change()
    }
    return undefined
  }

  /** The command waits for it no more. */
  leave(): void {
    this.hasLeft = true
    this.log.forget(this)
  }
}
