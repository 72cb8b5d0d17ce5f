/**
 * Streams stdin in requests of a few MiB, each with an offset. Keeps the bytes for retries until the service
 * accepts them.
 */
import type { Input } from './input.ts'
import { RetryPolicy, retrying } from './retry.ts'

const segmentBytes = 4 * 1024 * 1024
/**
 * Maximum time that a request waits for more input, in milliseconds. Short, because proxies close idle
 * requests.
 */
const idleMs = 5_000

export interface Stdin {
  /** Sends bytes that start at an offset. A retry calls this method again with the same bytes. */
  send(offset: number, bytes: AsyncIterable<Uint8Array>): Promise<unknown>
  end(offset: number): Promise<unknown>
}

/**
 * Sends `input` to the command and closes its stdin.
 * @param maxMs retry budget of each request, in milliseconds
 * @throws {CliError} if `send` or `end` still fails after the retries
 */
export async function feed(input: Input, stdin: Stdin, maxMs: number): Promise<void> {
  let offset = 0
  for (;;) {
    const first = await input.pull()
    if (input.isClosed) return
    if (typeof first === 'string') break
    const segment = new Segment()
    segment.push(first)
    void fill(segment, input)
    await retrying(() => stdin.send(offset, segment), new RetryPolicy({ maxMs }))
    offset += segment.size
  }
  await retrying(() => stdin.end(offset), new RetryPolicy({ maxMs }))
}

async function fill(segment: Segment, input: Input): Promise<void> {
  while (segment.size < segmentBytes) {
    const chunk = await input.pull(idleMs)
    if (typeof chunk === 'string') break
    segment.push(chunk)
  }
  segment.close()
}

/** The bytes of one request. They can be read repeatedly, even while more bytes arrive. */
class Segment implements AsyncIterable<Buffer> {
  size = 0
  private readonly chunks: Buffer[] = []
  private isClosed = false
  private changed = Promise.withResolvers<void>()

  push(chunk: Buffer): void {
    this.chunks.push(chunk)
    this.size += chunk.length
    this.notifyReaders()
  }

  close(): void {
    this.isClosed = true
    this.notifyReaders()
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

  private notifyReaders(): void {
    this.changed.resolve()
    this.changed = Promise.withResolvers()
  }
}
