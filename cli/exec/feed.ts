/**
 * Streams stdin to a command in requests of a few MiB. Keeps the bytes of each request until the request
 * succeeds, so that it can be retried.
 */
import { CliError } from '../core/errors.ts'
import { isGone } from './exit-status.ts'
import type { Input } from './input.ts'
import type { Remote } from './remote.ts'
import { RetryPolicy, retryBudgetMs, retrying } from './retry.ts'

const segmentBytes = 4 * 1024 * 1024
/**
 * How long an open request waits for more input, in milliseconds. The wait is short, because proxies close
 * idle requests.
 */
const idleMs = 5_000

/**
 * Sends the input and closes the command's stdin. Reports a failure with `note`, unless the command has
 * ended.
 * @param maxMs retry budget for each request, in milliseconds
 */
export async function sendInput(
  remote: Remote,
  id: string,
  input: Input,
  note: (text: string) => void,
  maxMs = retryBudgetMs,
): Promise<void> {
  try {
    let offset = 0
    for (;;) {
      const first = await input.pull()
      if (input.isClosed) return
      if (typeof first === 'string') break
      const segment = new Segment(first)
      void segment.fill(input)
      await retrying(() => remote.feed(id, offset, segment), new RetryPolicy({ maxMs }))
      offset += segment.size
    }
    await retrying(() => remote.endStdin(id, offset), new RetryPolicy({ maxMs }))
  } catch (error) {
    const isOver = error instanceof CliError && (error.code === 'exec_finished' || isGone(error))
    if (isOver || input.isClosed) return
    note(`sandlot: not all of stdin was sent: ${error instanceof Error ? error.message : error}`)
  }
}

/** The bytes of one stdin request. A retry reads them again from the start, even while more bytes arrive. */
class Segment implements AsyncIterable<Buffer> {
  size = 0
  private readonly chunks: Buffer[] = []
  private isComplete = false
  private changed = Promise.withResolvers<void>()

  constructor(first: Buffer) {
    this.push(first)
  }

  async fill(input: Input): Promise<void> {
    while (this.size < segmentBytes) {
      const chunk = await input.pull(idleMs)
      if (typeof chunk === 'string') break
      this.push(chunk)
    }
    this.isComplete = true
    this.notifyReaders()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    for (let at = 0; ; at++) {
      while (at >= this.chunks.length) {
        if (this.isComplete) return
        await this.changed.promise
      }
      yield this.chunks[at]!
    }
  }

  private push(chunk: Buffer): void {
    this.chunks.push(chunk)
    this.size += chunk.length
    this.notifyReaders()
  }

  private notifyReaders(): void {
    this.changed.resolve()
    this.changed = Promise.withResolvers()
  }
}
