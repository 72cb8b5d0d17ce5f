/** Reads lists of names from a sandbox, bounded, whatever the sandbox prints. */
import { inSlices, type Steps } from './slices.ts'

/** Bytes of a record. No name, path or line of our scripts is longer; a longer one was not printed by them. */
const recordBytes = 64 * 1024

export interface RecordReader {
  delimiter: Buffer
  onRecord: (record: Buffer) => void
  /** Called instead of `onRecord` for a record of more than `mostBytes` (by default 64 KiB), which is skipped. */
  onTooLong?: () => void
  mostBytes?: number
}

/**
 * Cuts a stream into records, each ended by the delimiter; what follows the last delimiter is left out. A record's
 * bytes are valid until `onRecord` returns.
 * @returns a function that takes the next chunk; each call must wait for the one before
 */
export function readRecords(accountId: string, reader: RecordReader): (chunk: Buffer) => Promise<void> {
  const { delimiter, onRecord, onTooLong = () => {}, mostBytes = recordBytes } = reader
  /** The start of a record whose end has not come yet, bounded, and never copied twice. */
  const held = Buffer.allocUnsafeSlow(mostBytes + delimiter.length)
  let heldBytes = 0
  /** Whether it is within a record that is too long. */
  let isPassing = false

  const end = (record: Buffer) => {
    if (isPassing || record.length > mostBytes) onTooLong()
    else onRecord(record)
    heldBytes = 0
    isPassing = false
  }
  /** Takes as many bytes as there is room for. @returns how many bytes of the chunk that was */
  const hold = (chunk: Buffer, from: number): number => {
    if (heldBytes === held.length) {
      // Of a skipped record, only what may be part of the delimiter is kept.
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
  return (chunk) => inSlices(accountId, take(chunk))
}

interface KeptItem<T> {
  key: string
  value: T
  bytes: number
}

/** The first of many records in the order of their bytes, up to a number of records and a number of bytes. */
export class FirstInOrder<T> {
  /** Some were left out. */
  truncated = false
  private readonly most: { count: number; bytes: number }
  /** A heap with the last record in order at its root. */
  private readonly heap: KeptItem<T>[] = []
  private bytes = 0
  /** The first record in order that was left out. Whatever comes after it in order is left out too. */
  private border: string | undefined

  constructor(most: { count: number; bytes: number }) {
    this.most = most
  }

  /** @param make returns the record and its size; called only for a record that may be kept */
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

/** How many bytes a value takes in an answer. */
export const jsonBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value)) + 1
