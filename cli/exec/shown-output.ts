/** Tracks the output shown so far, because each connection sends all kept output again. */
import { eventIdOf, type OutputOffset } from '../../shared/contract/exec-events.ts'
import type { ByteCounts } from './print.ts'

export class ShownOutput {
  private readonly shown: OutputOffset = { stdout: 0, stderr: 0 }
  /** Bytes received on the current connection. */
  private received: OutputOffset = { stdout: 0, stderr: 0 }

  /** Event id after the shown output. */
  get eventId(): string {
    return eventIdOf(this.shown)
  }

  restart(): void {
    this.received = { stdout: 0, stderr: 0 }
  }

  /** Returns the bytes that were not shown before. */
  unseen(stream: keyof OutputOffset, bytes: Buffer): Buffer {
    const before = this.shown[stream] - this.received[stream]
    this.advance(stream, bytes.length)
    return bytes.subarray(Math.max(0, before))
  }

  /** Skips bytes that are no longer kept. */
  skip({ stdout_bytes, stderr_bytes }: ByteCounts): void {
    this.advance('stdout', stdout_bytes)
    this.advance('stderr', stderr_bytes)
  }

  private advance(stream: keyof OutputOffset, bytes: number): void {
    this.received[stream] += bytes
    this.shown[stream] = Math.max(this.shown[stream], this.received[stream])
  }
}
