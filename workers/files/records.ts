import { limits } from '../../shared/contract/limits.ts'
import { runCooperatively, type Steps } from './cooperative.ts'

/**
 * Default maximum size of a record. Sandlot's scripts never print a longer record, but modified tools in the
 * image might.
 */
const recordBytes = 64 * 1024

interface RecordReader {
  delimiter: Buffer
  onRecord: (record: Buffer) => void
  /** Called instead of `onRecord` for a record that exceeds `maxBytes`, by default 64 KiB. */
  onTooLong?: () => void
  maxBytes?: number
}

/**
 * Splits a stream into records, each terminated by the delimiter, in bounded memory. A record's bytes are
 * valid only until `onRecord` returns.
 * @returns a function that accepts the next chunk; calls must not overlap
 */
export function readRecords(accountId: string, reader: RecordReader): (chunk: Buffer) => Promise<void> {
  const { delimiter, onRecord, onTooLong = () => {}, maxBytes = recordBytes } = reader
  const held = Buffer.allocUnsafeSlow(maxBytes + delimiter.length)
  let heldBytes = 0
  let isSkipping = false

  const end = (record: Buffer) => {
    if (isSkipping || record.length > maxBytes) onTooLong()
    else onRecord(record)
    heldBytes = 0
    isSkipping = false
  }
  /** Buffers a record that spans several chunks. Returns the number of bytes consumed from the chunk. */
  const hold = (chunk: Buffer, from: number): number => {
    if (heldBytes === held.length) {
      // For a skipped record, only bytes that may begin the delimiter are kept.
      isSkipping = true
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
 * Limits the number of items in each list of a response, and the size of all items as JSON.
 * @returns `add`, which appends an item to a list, and `enough`, which aborts when an item exceeds a limit
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
