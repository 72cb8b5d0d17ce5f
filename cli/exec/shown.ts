/** Tracks what a terminal has shown of a command, because each connection sends all kept output from the start. */
import { eventIdOf, type OutputOffset } from '../../shared/contract/exec-events.ts'
import type { ByteCounts } from './print.ts'

export class ShownOutput {
  private readonly seen: OutputOffset = { stdout: 0, stderr: 0 }
  /** How far the present connection has told. */
  private told: OutputOffset = { stdout: 0, stderr: 0 }

  /** Where events go on. */
  get eventId(): string {
    return eventIdOf(this.seen)
  }

  /** A new connection. */
  beginAgain(): void {
    this.told = { stdout: 0, stderr: 0 }
  }

  /** @returns the end of the bytes that was not shown before */
  unseen(stream: keyof OutputOffset, bytes: Buffer): Buffer {
    const before = this.seen[stream] - this.told[stream]
    this.advance(stream, bytes.length)
    return bytes.subarray(Math.max(0, before))
  }

  /** These bytes are no longer kept. */
  skip({ stdout_bytes, stderr_bytes }: ByteCounts): void {
    this.advance('stdout', stdout_bytes)
    this.advance('stderr', stderr_bytes)
  }

  private advance(stream: keyof OutputOffset, bytes: number): void {
    this.told[stream] += bytes
    this.seen[stream] = Math.max(this.seen[stream], this.told[stream])
  }
}
