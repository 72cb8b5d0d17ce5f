import type { Readable } from 'node:stream'
import { withTimeout } from '../../shared/lib/timeout.ts'

export class Input {
  isClosed = false
  byteCount = 0
  private readonly source: Readable
  private readonly chunks: AsyncIterator<Buffer>
  /** Bytes that `whole` has read, but `pull` has not returned yet. */
  private readonly early: Buffer[] = []
  private asked: Promise<IteratorResult<Buffer>> | undefined

  constructor(source: Readable) {
    this.source = source
    this.chunks = source[Symbol.asyncIterator]()
  }

  /**
   * Returns the next chunk, `end`, or `late` after a timeout. A chunk that arrives after a timeout is kept
   * for the next call.
   */
  async pull(maxMs?: number): Promise<Buffer | 'late' | 'end'> {
    const before = this.early.shift()
    return before ?? (await this.next(maxMs))
  }

  /**
   * Returns all of stdin if it ends within both limits. Otherwise returns undefined, and keeps the bytes for
   * `pull`.
   */
  async whole(maxBytes: number, maxMs: number): Promise<Buffer | undefined> {
    const end = performance.now() + maxMs
    for (let size = 0; size <= maxBytes; ) {
      const chunk = await this.next(Math.max(0, end - performance.now()))
      if (chunk === 'end') return Buffer.concat(this.early)
      if (chunk === 'late') return undefined
      this.early.push(chunk)
      size += chunk.length
    }
    return undefined
  }

  close(): void {
    this.isClosed = true
    this.source.destroy()
  }

  private async next(maxMs: number | undefined): Promise<Buffer | 'late' | 'end'> {
    // A closed stdin counts as ended.
    this.asked ??= this.chunks.next().catch(() => ({ done: true, value: undefined }))
    const next =
      maxMs === undefined ? await this.asked : await withTimeout(maxMs, this.asked, () => 'late' as const)
    if (next === 'late') return 'late'
    if (next.done) return 'end'
    this.asked = undefined
    this.byteCount += next.value.length
    return next.value
  }
}
