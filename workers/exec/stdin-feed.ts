/**
 * A command's stdin, fed by requests that each say at which offset their bytes belong. A request that is repeated after
 * a lost connection writes nothing twice, and one that leaves a hole is refused.
 */
import type { Writable } from 'node:stream'
import { limitByKey } from '../../shared/lib/limit-by-key.ts'
import { Problem } from '../../shared/platform/problem.ts'
import { write } from '../rpc/bytes.ts'

export class StdinFeed {
  /** Bytes taken so far. */
  offset = 0
  eof = false
  private target: Writable | undefined
  private readonly opened = Promise.withResolvers<void>()
  private readonly inTurn = limitByKey()

  /** Called when the command has started: from here on bytes go to it. */
  open(stdin: Writable): void {
    this.target = stdin
    this.opened.resolve()
  }

  /** Called when the command has ended: no more bytes are taken. */
  close(): void {
    this.target = undefined
    this.opened.resolve()
  }

  /** @param bytes begin at offset `at`; without it, where the last ones ended */
  take(bytes: AsyncIterable<Buffer> | Buffer[], at: number | undefined, eof: boolean): Promise<void> {
    return this.inTurn('', () => this.takeNow(bytes, at ?? this.offset, eof))
  }

  /** The same for bytes that are in memory. */
  takeBytes(bytes: Buffer, at: number | undefined, eof: boolean): Promise<void> {
    return this.take([bytes], at, eof)
  }

  private async takeNow(bytes: AsyncIterable<Buffer> | Buffer[], at: number, eof: boolean): Promise<void> {
    if (at > this.offset) throw offsetConflict(this.offset)
    await this.opened.promise
    let position = at
    for await (const chunk of bytes) {
      // Bytes that were taken before are skipped.
      const fresh = chunk.subarray(Math.max(0, this.offset - position))
      position += chunk.length
      if (fresh.length === 0) continue
      if (this.eof) throw finished('its stdin is closed')
      if (this.target?.destroyed || !this.target?.writable) throw finished('it takes no more')
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
  new Problem('exec_finished', `The command takes nothing more: ${why}.`)

const offsetConflict = (offset: number) =>
  new Problem('stdin_offset_conflict', `The bytes must begin at ${offset} or before.`, {
    members: { offset },
  })
