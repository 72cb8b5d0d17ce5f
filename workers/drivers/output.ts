/** The output of a process, from the one connection that carries all of it. */
import { Readable } from 'node:stream'
import { GrowingBuffer } from '../../shared/lib/growing-buffer.ts'

/** Bytes. A larger piece is kept as it is: the object that it costs is much less than a copy. */
const smallBytes = 4 * 1024

interface SharedConnection {
  connection: { pause(): void; resume(): void }
  mostBytes: number
  /** Its outputs that have so many bytes waiting. */
  full: Set<ProcessOutput>
}

/**
 * Makes streams of a connection, which is paused while one of them has this many bytes waiting for its reader. Small
 * waiting pieces are copied together: a process that prints byte by byte must not cost an object for each.
 */
export function outputsOf(
  connection: SharedConnection['connection'],
  mostBytes: number,
): () => ProcessOutput {
  const shared = { connection, mostBytes, full: new Set<ProcessOutput>() }
  return () => new ProcessOutput(shared)
}

export class ProcessOutput {
  readonly stream: Readable
  private readonly shared: SharedConnection
  private waiting: Buffer[] = []
  private small: GrowingBuffer | undefined
  private waitingBytes = 0
  private isWanted = false
  private isOver = false

  constructor(shared: SharedConnection) {
    this.shared = shared
    this.stream = new Readable({
      // One piece at a time; the others wait here.
      highWaterMark: 1,
      read: () => {
        this.isWanted = true
        this.give()
      },
      destroy: (error, done) => {
        // Nobody reads this stream any more. Its output is dropped, and the other stream goes on.
        this.waiting = []
        this.small = undefined
        this.waitingBytes = 0
        this.flow()
        done(error)
      },
    })
  }

  push(bytes: Buffer): void {
    if (bytes.length === 0 || this.isOver || this.stream.destroyed) return
    if (this.isWanted && this.waitingBytes === 0) {
      this.isWanted = this.stream.push(bytes)
      return
    }
    this.waitingBytes += bytes.length
    if (bytes.length < smallBytes) {
      this.small ??= new GrowingBuffer()
      this.small.push(bytes)
    } else {
      this.closeSmall()
      this.waiting.push(bytes)
    }
    const { connection, mostBytes, full } = this.shared
    if (this.waitingBytes < mostBytes || full.has(this)) return
    full.add(this)
    connection.pause()
  }

  /** No more comes; waiting output can still be read. */
  end(): void {
    if (this.isOver || this.stream.destroyed) return
    this.isOver = true
    this.give()
  }

  private closeSmall(): void {
    if (this.small) this.waiting.push(this.small.bytes)
    this.small = undefined
  }

  private give(): void {
    while (this.isWanted && this.waitingBytes > 0) {
      if (this.waiting.length === 0) this.closeSmall()
      const piece = this.waiting.shift()!
      this.waitingBytes -= piece.length
      this.isWanted = this.stream.push(piece)
    }
    if (this.waitingBytes < this.shared.mostBytes) this.flow()
    if (this.isOver && this.waitingBytes === 0) this.stream.push(null)
  }

  private flow(): void {
    const { connection, full } = this.shared
    if (full.delete(this) && full.size === 0) connection.resume()
  }
}
