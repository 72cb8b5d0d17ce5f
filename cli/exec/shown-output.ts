/** Tracks which output has already been shown, because each new connection sends all kept output again. */
import { eventIdOf, type OutputOffset } from '../../shared/contract/exec-events.ts'
import type { ByteCounts } from './print.ts'

export class ShownOutput {
  private readonly shown: OutputOffset = { stdout: 0, stderr: 0 }
  /** Number of bytes received on each stream of the current connection, including skipped bytes. */
  private received: OutputOffset = { stdout: 0, stderr: 0 }

  /** Id of the event at which the output shown so far ends. */
  get eventId(): string {
    return eventIdOf(this.shown)
  }

  restart(): void {
    this.received = { stdout: 0, stderr: 0 }
  }

  /** Returns those of the received bytes that have not been shown yet. */
  unseen(stream: keyof OutputOffset, bytes: Buffer): Buffer {
    const before = this.shown[stream] - this.received[stream]
    this.advance(stream, bytes.length)
    return bytes.subarray(Math.max(0, before))
  }

  /** Advances past bytes that the service no longer keeps. */
  skip({ stdout_bytes, stderr_bytes }: ByteCounts): void {
    this.advance('stdout', stdout_bytes)
    this.advance('stderr', stderr_bytes)
  }

  private advance(stream: keyof OutputOffset, bytes: number): void {
    this.received[stream] += bytes
    this.shown[stream] = Math.max(this.shown[stream], this.received[stream])
  }
}
