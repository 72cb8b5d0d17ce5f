/**
 * Writes stdin from requests to a command. Each request states the offset of its first byte, so a retried
 * request writes no byte twice, and a request that would leave a gap is rejected.
 */
import type { Writable } from 'node:stream'
import { limitByKey } from '../../shared/lib/limit-by-key.ts'
import { Problem } from '../../shared/platform/problem.ts'
import { write } from '../rpc/bytes.ts'

export class StdinFeed {
  offset = 0
  eof = false
  private target: Writable | undefined
  private readonly opened = Promise.withResolvers<void>()
  private readonly serialize = limitByKey()

  open(stdin: Writable): void {
    this.target = stdin
    this.opened.resolve()
  }

  /** Rejects all bytes from now on. */
  close(): void {
    this.target = undefined
    this.opened.resolve()
  }

  /**
   * Writes stdin once all earlier calls have finished.
   * @param at offset of the first byte; defaults to the end of the stdin accepted so far
   */
  take(bytes: AsyncIterable<Buffer> | Buffer[], at: number | undefined, eof: boolean): Promise<void> {
    return this.serialize('', () => this.takeNow(bytes, at ?? this.offset, eof))
  }

  private async takeNow(bytes: AsyncIterable<Buffer> | Buffer[], at: number, eof: boolean): Promise<void> {
    if (at > this.offset) throw offsetConflict(this.offset)
    await this.opened.promise
    let position = at
    for await (const chunk of bytes) {
      // Skips bytes that were accepted before.
      const fresh = chunk.subarray(Math.max(0, this.offset - position))
      position += chunk.length
      if (fresh.length === 0) continue
      if (this.eof) throw finished('its stdin is closed')
      if (this.target?.destroyed || !this.target?.writable) throw finished('it has ended or closed its stdin')
      this.offset += fresh.length
      await write(this.target, fresh)
    }
    if (eof && !this.eof) {
      this.eof = true
      this.target?.end()
    }
  }
}

export const finished = (why: string) =>
  new Problem('exec_finished', `This command accepts no more input, because ${why}.`)

const offsetConflict = (offset: number) =>
  new Problem('stdin_offset_conflict', `The next stdin request must start at offset ${offset} or lower.`, {
    members: { offset },
  })
