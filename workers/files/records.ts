/** Reads lists of names from a sandbox, bounded, whatever the sandbox prints. */
import { limits } from '../../shared/contract/limits.ts'
import { runCooperatively, type Steps } from './cooperative.ts'

/** Bytes of a record. No name, path or line of our scripts is longer; a longer one was not printed by them. */
const recordBytes = 64 * 1024

export interface RecordReader {
  delimiter: Buffer
  onRecord: (record: Buffer) => void
  /** Called instead of `onRecord` for a record of more than `maxBytes` (by default 64 KiB), which is skipped. */
  onTooLong?: () => void
  maxBytes?: number
}

/**
 * Cuts a stream into records, each ended by the delimiter; what follows the last delimiter is left out. A record's
 * bytes are valid until `onRecord` returns.
 * @returns a function that takes the next chunk; each call must wait for the one before
 */
export function readRecords(accountId: string, reader: RecordReader): (chunk: Buffer) => Promise<void> {
  const { delimiter, onRecord, onTooLong = () => {}, maxBytes = recordBytes } = reader
  /** The start of a record whose end has not come yet, bounded, and never copied twice. */
  const held = Buffer.allocUnsafeSlow(maxBytes + delimiter.length)
  let heldBytes = 0
  /** Whether it is within a record that is too long. */
  let isPassing = false

  const end = (record: Buffer) => {
    if (isPassing || record.length > maxBytes) onTooLong()
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
  return (chunk) => runCooperatively(accountId, take(chunk))
}

/**
 * Limits the items of an answer, in number and in bytes of JSON.
 * @returns `add` keeps an item in its list, or aborts `enough` if there is no room for it
 */
export function limitItems() {
  const enough = new AbortController()
  let bytes = 0
  return {
    enough: enough.signal,
    add<T>(list: T[], item: T, max: number): void {
      bytes += Buffer.byteLength(JSON.stringify(item)) + 1
      if (list.length === max || bytes > limits.listed.bytes) enough.abort()
      if (!enough.signal.aborted) list.push(item)
    },
  }
}
