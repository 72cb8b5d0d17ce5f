/** Reading lists of names out of a sandbox: bounded, whatever it prints. */

/** No name, path or line of ours is longer; what is, was not printed by our script. */
const recordBytes = 64 * 1024

/** Cuts a stream into what stands before each delimiter; what follows the last one is left out. */
export function splitRecords(delimiter: Buffer, onRecord: (record: Buffer) => void) {
  let held: Buffer = Buffer.alloc(0)
  return (chunk: Buffer): void => {
    const bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk])
    let from = 0
    for (let at = bytes.indexOf(delimiter); at !== -1; at = bytes.indexOf(delimiter, from)) {
      onRecord(bytes.subarray(from, at))
      from = at + delimiter.length
    }
    const rest = bytes.subarray(from)
    // Copied, so that the chunk is let go.
    held = Buffer.from(rest.length > recordBytes ? rest.subarray(rest.length - delimiter.length) : rest)
  }
}

/** The first `limit` of many records in the order of their bytes, in memory for about twice as many. */
export class FirstInOrder<T> {
  truncated = false
  private readonly limit: number
  private records: { key: string; value: T }[] = []

  constructor(limit: number) {
    this.limit = limit
  }

  push(key: Buffer, value: T): void {
    this.records.push({ key: key.toString('latin1'), value })
    if (this.records.length >= 2 * this.limit + 1) this.cut()
  }

  values(): T[] {
    this.cut()
    return this.records.map(({ value }) => value)
  }

  private cut() {
    this.records.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
    if (this.records.length > this.limit) this.truncated = true
    this.records = this.records.slice(0, this.limit)
  }
}
