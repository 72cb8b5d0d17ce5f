/**
 * Stdin on its way to a command, as it comes. It goes in requests of some megabytes that say where
 * their bytes belong; each is kept until it was taken, so that a broken one is sent again.
 */
import type { Input } from './input.ts'
import { patiently } from './retry.ts'

const segmentBytes = 4 * 1024 * 1024
/** A request is ended when nothing has come for so long: proxies end those that are idle. */
const idleMs = 5_000

export interface Stdin {
  /** Sends bytes that begin at `offset`; may be called again for the same. */
  send(offset: number, bytes: AsyncIterable<Uint8Array>): Promise<unknown>
  /** There is no more; all was taken up to `offset`. */
  end(offset: number): Promise<unknown>
}

/** @throws {CliError} what `send` does */
export async function feed(input: Input, stdin: Stdin): Promise<void> {
  let offset = 0
  for (;;) {
    const first = await input.pull()
    if (input.isClosed) return
    if (typeof first === 'string') break
    const segment = new Segment()
    segment.push(first)
    void fill(segment, input)
    await patiently(() => stdin.send(offset, segment))
    offset += segment.size
  }
  await patiently(() => stdin.end(offset))
}

async function fill(segment: Segment, input: Input): Promise<void> {
  while (segment.size < segmentBytes) {
    const chunk = await input.pull(idleMs)
    if (typeof chunk === 'string') break
    segment.push(chunk)
  }
  segment.close()
}

/** Bytes that are still coming, to be read from the first one any number of times. */
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
