/** Splits one connection into several output streams, with backpressure. */
import { Readable } from 'node:stream'
import { PendingBytes } from '../../shared/lib/pending-bytes.ts'

interface SharedConnection {
  connection: { pause(): void; resume(): void }
  maxBytes: number
  full: Set<ProcessOutput>
}

/**
 * Returns a function that creates output streams. The connection is paused while any of these streams buffers
 * `maxBytes` or more.
 */
export function outputsOf(connection: SharedConnection['connection'], maxBytes: number): () => ProcessOutput {
  const shared = { connection, maxBytes, full: new Set<ProcessOutput>() }
  return () => new ProcessOutput(shared)
}

export class ProcessOutput {
  readonly stream: Readable
  private readonly shared: SharedConnection
  private waiting = new PendingBytes()
  private isWanted = false
  private isOver = false

  constructor(shared: SharedConnection) {
    this.shared = shared
    this.stream = new Readable({
      // Forwards one chunk at a time. The remaining chunks are buffered in `waiting`.
      highWaterMark: 1,
      read: () => {
        this.isWanted = true
        this.give()
      },
      destroy: (error, done) => {
        // Drops the buffered output, so that the other stream can continue.
        this.waiting = new PendingBytes()
        this.resume()
        done(error)
      },
    })
  }

  push(bytes: Buffer): void {
    if (bytes.length === 0 || this.isOver || this.stream.destroyed) return
    if (this.isWanted && this.waiting.length === 0) {
      this.isWanted = this.stream.push(bytes)
      return
    }
    this.waiting.push(bytes)
    const { connection, maxBytes, full } = this.shared
    if (this.waiting.length < maxBytes || full.has(this)) return
    full.add(this)
    connection.pause()
  }

  /** Ends the stream. Buffered output can still be read. */
  end(): void {
    if (this.isOver || this.stream.destroyed) return
    this.isOver = true
    this.give()
  }

  private give(): void {
    while (this.isWanted && this.waiting.length > 0) this.isWanted = this.stream.push(this.waiting.shift())
    if (this.waiting.length < this.shared.maxBytes) this.resume()
    if (this.isOver && this.waiting.length === 0) this.stream.push(null)
  }

  private resume(): void {
    const { connection, full } = this.shared
    if (full.delete(this) && full.size === 0) connection.resume()
  }
}
