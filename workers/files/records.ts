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

/** So many records more than may stay come before those are sorted out: in a millisecond, most are in order already. */
const spareRecords = 1_000

/** The first of many records in the order of their bytes, up to a number of records and a number of bytes. */
export class FirstInOrder<T> {
  private readonly most: { count: number; bytes: number }
  private readonly kept: KeptItem<T>[] = []
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
    const item = { key: text, ...make() }
    this.kept.push(item)
    this.bytes += item.bytes
    const { count, bytes } = this.most
    if (this.kept.length > count + spareRecords || this.bytes > 2 * bytes) this.sortOut()
  }

  get truncated(): boolean {
    return this.border !== undefined || this.isOver()
  }

  values(): T[] {
    this.sortOut()
    return this.kept.map(({ value }) => value)
  }

  private sortOut(): void {
    const { kept } = this
    kept.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
    while (this.isOver()) {
      const last = kept.pop()!
      this.border = last.key
      this.bytes -= last.bytes
    }
  }

  private isOver = (): boolean => this.kept.length > this.most.count || this.bytes > this.most.bytes
}

export const jsonBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value)) + 1
