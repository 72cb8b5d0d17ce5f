/** Reads stdin piece by piece, and waits for each piece only so long. */
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'

export class Input {
  isClosed = false
  /** Bytes that were read from the source. */
  byteCount = 0
  private readonly source: Readable
  private readonly chunks: AsyncIterator<Buffer>
  /** Read before, and to be pulled first. */
  private readonly early: Buffer[] = []
  private asked: Promise<IteratorResult<Buffer>> | undefined

  constructor(source: Readable) {
    this.source = source
    this.chunks = source[Symbol.asyncIterator]()
  }

  /** @returns what came within the time; later bytes are for the next call */
  async pull(mostMs?: number): Promise<Buffer | 'late' | 'end'> {
    const before = this.early.shift()
    return before ?? (await this.next(mostMs))
  }

  /** All of stdin, if it ends within the time and the size; otherwise undefined, and nothing is lost. */
  async whole(mostBytes: number, mostMs: number): Promise<Buffer | undefined> {
    const end = performance.now() + mostMs
    for (let size = 0; size <= mostBytes; ) {
      const chunk = await this.next(Math.max(0, end - performance.now()))
      if (chunk === 'end') return Buffer.concat(this.early)
      if (chunk === 'late') return undefined
      this.early.push(chunk)
      size += chunk.length
    }
    return undefined
  }

  /** Nobody reads any more. */
  close(): void {
    this.isClosed = true
    this.source.destroy()
  }

  private async next(mostMs: number | undefined): Promise<Buffer | 'late' | 'end'> {
    // A stdin that was closed has ended.
    this.asked ??= this.chunks.next().catch(() => ({ done: true, value: undefined }))
    const timer = new AbortController()
    const late =
      mostMs === undefined ? [] : [sleep(mostMs, 'late' as const, timer).catch(() => 'late' as const)]
    const next = await Promise.race([this.asked, ...late]).finally(() => timer.abort())
    if (next === 'late') return 'late'
    if (next.done) return 'end'
    this.asked = undefined
    this.byteCount += next.value.length
    return next.value
  }
}
