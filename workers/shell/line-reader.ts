import type { Readable } from 'node:stream'
import { untilAny } from '../../shared/lib/until-any.ts'

/** Reads single lines from a stream and leaves the rest of the stream unread. */
export class LineReader {
  readonly stream: Readable
  private ahead: Buffer = Buffer.alloc(0)

  constructor(stream: Readable) {
    this.stream = stream
  }

  /** Returns undefined if the stream ends first or the line is too long. */
  async next(): Promise<string | undefined> {
    for (;;) {
      const end = this.ahead.indexOf('\n')
      if (end !== -1) {
        const line = this.ahead.toString('latin1', 0, end)
        this.ahead = this.ahead.subarray(end + 1)
        return line
      }
      if (this.ahead.length > 256) return undefined
      const chunk = this.stream.read() as Buffer | null
      if (chunk !== null) this.ahead = Buffer.concat([this.ahead, chunk])
      else if (this.stream.readableEnded || this.stream.destroyed) return undefined
      else await untilAny(this.stream, ['readable', 'end', 'close'])
    }
  }

  /** Returns the bytes that have been read from the stream, but not as lines. */
  takeRest(): Buffer {
    const { ahead } = this
    this.ahead = Buffer.alloc(0)
    return ahead
  }

  putBack(bytes: Buffer): void {
    this.ahead = bytes
  }
}
