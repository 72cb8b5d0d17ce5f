/**
 * Streams stdin to a command. It goes in requests of some megabytes that say where
 * their bytes belong. Each is kept until it was accepted, so that a broken one can be sent again.
 */
import type { Input } from './input.ts'
import { Patience, patiently } from './retry.ts'

const segmentBytes = 4 * 1024 * 1024
/** A request ends after so long without input, because proxies close idle ones. */
const idleMs = 5_000

export interface Stdin {
  /** Sends bytes that begin at `offset`; may be called again for the same. */
  send(offset: number, bytes: AsyncIterable<Uint8Array>): Promise<unknown>
  /** stdin has ended; everything up to `offset` was accepted. */
  end(offset: number): Promise<unknown>
}

/**
 * @param mostMs the patience with a service that is away
 * @throws {CliError} what `send` does
 */
export async function feed(input: Input, stdin: Stdin, mostMs: number): Promise<void> {
  let offset = 0
  for (;;) {
    const first = await input.pull()
    if (input.isClosed) return
    if (typeof first === 'string') break
    const segment = new Segment()
    segment.push(first)
    void fill(segment, input)
    await patiently(() => stdin.send(offset, segment), new Patience({ mostMs }))
    offset += segment.size
  }
  await patiently(() => stdin.end(offset), new Patience({ mostMs }))
}

async function fill(segment: Segment, input: Input): Promise<void> {
  while (segment.size < segmentBytes) {
    const chunk = await input.pull(idleMs)
    if (typeof chunk === 'string') break
    segment.push(chunk)
  }
  segment.close()
}

/** Bytes that still arrive, and can be read from the start any number of times. */
class Segment implements AsyncIterable<Buffer> {
  size = 0
  private readonly chunks: Buffer[] = []
  private isClosed = false
  private changed = Promise.withResolvers<void>()

  push(chunk: Buffer): void {
    this.chunks.push(chunk)
    this.size += chunk.length
    this.tell()
  }

  close(): void {
    this.isClosed = true
    this.tell()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    for (let at = 0; ; at++) {
      while (at >= this.chunks.length) {
        if (this.isClosed) return
        await this.changed.promise
      }
      yield this.chunks[at]!
    }
  }

  private tell(): void {
    this.changed.resolve()
    this.changed = Promise.withResolvers()
  }
}
