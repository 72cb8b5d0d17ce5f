/** Tracks which output has been shown, because each new connection replays all stored output. */
import { eventIdOf, type OutputOffset } from '../../shared/contract/exec-events.ts'
import type { ByteCounts } from './print.ts'

export class ShownOutput {
  private readonly shown: OutputOffset = { stdout: 0, stderr: 0 }
  /** Bytes received on the current connection, including skipped bytes. */
  private received: OutputOffset = { stdout: 0, stderr: 0 }

  get eventId(): string {
    return eventIdOf(this.shown)
  }

  restart(): void {
    this.received = { stdout: 0, stderr: 0 }
  }

  /** Returns the bytes that have not been shown yet, and marks them as shown. */
  unseen(stream: keyof OutputOffset, bytes: Buffer): Buffer {
    const before = this.shown[stream] - this.received[stream]
    this.advance(stream, bytes.length)
    return bytes.subarray(Math.max(0, before))
  }

  /** Advances past bytes that the service no longer stores. */
  skip({ stdout_bytes, stderr_bytes }: ByteCounts): void {
    this.advance('stdout', stdout_bytes)
    this.advance('stderr', stderr_bytes)
  }

  private advance(stream: keyof OutputOffset, bytes: number): void {
    this.received[stream] += bytes
    this.shown[stream] = Math.max(this.shown[stream], this.received[stream])
  }
}
