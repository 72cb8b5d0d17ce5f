/** Reading lists of names out of a sandbox: bounded, whatever it prints. */
import type { Share, Steps } from './slices.ts'

/** No name, path or line of ours is longer; what is, was not printed by our script. */
const recordBytes = 64 * 1024

export interface RecordReader {
  delimiter: Buffer
  onRecord: (record: Buffer) => void
  /** Instead of one of more bytes than `mostBytes` (64 KiB unless told), which is passed over. */
  onTooLong?: () => void
  mostBytes?: number
}

/**
 * Cuts a stream into what stands before each delimiter; what follows the last one is left out. A record is gone
 * when `onRecord` returns.
 * @returns takes the next chunk; each must wait for the one before
 */
export function readRecords(share: Share, reader: RecordReader): (chunk: Buffer) => Promise<void> {
  const { delimiter, onRecord, onTooLong = () => {}, mostBytes = recordBytes } = reader
  /** The start of a record whose end is yet to come: as long as it may be, and never copied twice. */
  const held = Buffer.allocUnsafeSlow(mostBytes + delimiter.length)
  let heldBytes = 0
  /** Within a record that is too long already. */
  let isPassing = false

  const end = (record: Buffer) => {
    if (isPassing || record.length > mostBytes) onTooLong()
    else onRecord(record)
    heldBytes = 0
    isPassing = false
  }
  /** Takes as much as there is room for. @returns how many bytes of the chunk that was */
  const hold = (chunk: Buffer, from: number): number => {
    if (heldBytes === held.length) {
      // Of what is passed over, only what may be a part of the delimiter counts.
      isPassing = true
      held.copyWithin(0, heldBytes - delimiter.length + 1)
      heldBytes = delimiter.length - 1
    }
    const before = heldBytes
    heldBytes += chunk.copy(held, heldBytes, from)
    const at = held.subarray(0, heldBytes).indexOf(delimiter, Math.max(0, before - delimiter.length + 1))
    if (at === -1) return heldBytes - before
    const taken = at + delimiter.length - before
    end(held.subarray(0, at))
    return taken
  }
  function* take(chunk: Buffer): Steps<void> {
    let from = 0
    while (from < chunk.length) {
      const at = heldBytes === 0 ? chunk.indexOf(delimiter, from) : -1
      if (at === -1) from += hold(chunk, from)
      else {
        end(chunk.subarray(from, at))
        from = at + delimiter.length
      }
      yield
    }
  }
  return (chunk) => share.run(take(chunk))
}

interface KeptItem<T> {
  key: string
  value: T
  bytes: number
}

/** The first of many records in the order of their bytes: so many at most, and so many bytes of them together. */
export class FirstInOrder<T> {
  /** Some were left out. */
  truncated = false
  private readonly most: { count: number; bytes: number }
  /** A heap: the last in order is the first here, and none comes behind the one that it hangs on. */
  private readonly heap: KeptItem<T>[] = []
  private bytes = 0
  /** The first in order that was left out: what comes behind it is left out too. */
  private border: string | undefined

  constructor(most: { count: number; bytes: number }) {
    this.most = most
  }

  /** @param make the record and its size, asked only for one that may be kept */
  push(key: Buffer, make: () => { value: T; bytes: number }): void {
    const text = key.toString('latin1')
    if (this.border !== undefined && text >= this.border) return
    const kept = { key: text, ...make() }
    this.heap.push(kept)
    this.bytes += kept.bytes
    this.rise(this.heap.length - 1)
    while (this.heap.length > this.most.count || this.bytes > this.most.bytes) this.leaveOut()
  }

  values(): T[] {
    const sorted = this.heap.toSorted((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
    return sorted.map(({ value }) => value)
  }

  private leaveOut(): void {
    const last = this.heap[0]!
    const moved = this.heap.pop()!
    this.truncated = true
    this.border = last.key
    this.bytes -= last.bytes
    if (this.heap.length === 0) return
    this.heap[0] = moved
    this.sink()
  }

  private rise(at: number): void {
    const { heap } = this
    for (let child = at; child > 0; ) {
      const parent = (child - 1) >>> 1
      if (heap[parent]!.key >= heap[child]!.key) return
      this.swap(parent, child)
      child = parent
    }
  }

  private sink(): void {
    const { heap } = this
    for (let parent = 0; ; ) {
      const left = 2 * parent + 1
      const right = left + 1
      if (left >= heap.length) return
      const child = right < heap.length && heap[right]!.key > heap[left]!.key ? right : left
      if (heap[parent]!.key >= heap[child]!.key) return
      this.swap(parent, child)
      parent = child
    }
  }

  private swap(a: number, b: number): void {
    const { heap } = this
    const held = heap[a]!
    heap[a] = heap[b]!
    heap[b] = held
  }
}

/** How much of an answer it is. */
export const jsonBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value)) + 1
