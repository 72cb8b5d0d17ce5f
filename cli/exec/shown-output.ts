/** Tracks the output shown so far, because each connection sends all kept output again. */
import { eventIdOf, type OutputOffset } from '../../shared/contract/exec-events.ts'
import type { ByteCounts } from './print.ts'

export class ShownOutput {
  private readonly seen: OutputOffset = { stdout: 0, stderr: 0 }
  /** Position of the current connection. */
  private told: OutputOffset = { stdout: 0, stderr: 0 }

  /** Position to continue from. */
  get eventId(): string {
    return eventIdOf(this.seen)
  }

  beginAgain(): void {
    this.told = { stdout: 0, stderr: 0 }
  }

  /** Returns the bytes that were not shown before. */
  unseen(stream: keyof OutputOffset, bytes: Buffer): Buffer {
    const before = this.seen[stream] - this.told[stream]
    this.advance(stream, bytes.length)
    return bytes.subarray(Math.max(0, before))
  }

  /** Skips bytes that are no longer kept. */
  skip({ stdout_bytes, stderr_bytes }: ByteCounts): void {
    this.advance('stdout', stdout_bytes)
    this.advance('stderr', stderr_bytes)
  }

  private advance(stream: keyof OutputOffset, bytes: number): void {
    this.told[stream] += bytes
    this.seen[stream] = Math.max(this.seen[stream], this.told[stream])
  }
}
