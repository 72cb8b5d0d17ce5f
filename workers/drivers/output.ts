/** The output of a process, from the one connection that carries all of it. */
import { Readable } from 'node:stream'
import { GrowingBuffer } from './growing-buffer.ts'

export interface ProcessOutput {
  stream: Readable
  push(bytes: Buffer): void
  /** No more comes; waiting output can still be read. */
  end(): void
}

/** Bytes. A larger piece is kept as it is: the object that it costs is much less than a copy. */
const smallBytes = 4 * 1024

/**
 * Makes streams of a connection, which is paused while one of them has this many bytes waiting for its reader. Small
 * waiting pieces are copied together: a process that prints byte by byte must not cost an object for each.
 */
export function outputsOf(
  connection: { pause(): void; resume(): void },
  mostBytes: number,
): () => ProcessOutput {
  const full = new Set<ProcessOutput>()
  const flow = (output: ProcessOutput) => {
    if (full.delete(output) && full.size === 0) connection.resume()
  }
  return () => {
    let waiting: Buffer[] = []
    let small: GrowingBuffer | undefined
    let waitingBytes = 0
    let isWanted = false
    let isOver = false
    const closeSmall = () => {
      if (small) waiting.push(small.bytes)
      small = undefined
    }
    const give = () => {
      while (isWanted && waitingBytes > 0) {
        if (waiting.length === 0) closeSmall()
        const piece = waiting.shift()!
        waitingBytes -= piece.length
        isWanted = stream.push(piece)
      }
      if (waitingBytes < mostBytes) flow(output)
      if (isOver && waitingBytes === 0) stream.push(null)
    }
    const stream = new Readable({
      // One piece at a time; the others wait here.
      highWaterMark: 1,
      read() {
        isWanted = true
        give()
      },
      destroy(error, done) {
        // Nobody reads this stream any more. Its output is dropped, and the other stream goes on.
        waiting = []
        small = undefined
        waitingBytes = 0
        flow(output)
        done(error)
      },
    })
    const output: ProcessOutput = {
      stream,
      push(bytes) {
        if (bytes.length === 0 || isOver || stream.destroyed) return
        if (isWanted && waitingBytes === 0) {
          isWanted = stream.push(bytes)
          return
        }
        waitingBytes += bytes.length
        if (bytes.length < smallBytes) {
          small ??= new GrowingBuffer()
          small.push(bytes)
        } else {
          closeSmall()
          waiting.push(bytes)
        }
        if (waitingBytes < mostBytes || full.has(output)) return
        full.add(output)
        connection.pause()
      },
      end() {
        if (isOver || stream.destroyed) return
        isOver = true
        give()
      },
    }
    return output
  }
}
