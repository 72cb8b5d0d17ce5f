/**
 * Tracks the clients of a command: those that wait for it or read its output, and disconnected ones that may return. A
 * command keeps running without clients for its grace.
 */
import type { OutputOffset } from '../../shared/contract/exec-events.ts'
import type { OutputLog, Reader } from './output-log.ts'

export interface Awaited {
  readonly log: OutputLog
  readonly isRunning: boolean
  readonly ended: Promise<void>
}

export interface Grace {
  /** Milliseconds after a disconnect within which a client must return. */
  ms: number
  /** Called when a grace is over and no other client is attached. May be called repeatedly. */
  onOver(): void
}

export class AttachedClients {
  private readonly command: Awaited
  private readonly grace: Grace
  /** The number of clients, including disconnected ones within their grace. */
  private count = 0
  /** Disconnected readers that may return. The command still blocks on them. */
  private readonly absent = new Set<Reader>()

  constructor(command: Awaited, grace: Grace) {
    this.command = command
    this.grace = grace
  }

  /** Adds a reader that begins at an offset. The command blocks on it until its grace is over. */
  attach(from?: OutputOffset): Reader {
    this.arrive()
    const reader = this.command.log.read(from)
    // This reader replaces the one of the broken connection, so the command no longer blocks on that one.
    if (from) this.findFormer(from)?.leave()
    return reader
  }

  /** Called when the client of this reader has disconnected. May be called repeatedly. */
  detach(reader: Reader): void {
    if (reader.isAbsent) return
    reader.isAbsent = true
    this.absent.add(reader)
    this.leave(() => {
      this.absent.delete(reader)
      reader.leave()
    })
  }

  /** Adds a client that waits for the command without reading its output. */
  arrive(): void {
    this.count++
  }

  /** Removes a client after its grace, or at the end of the command. */
  leave(forget: () => void = () => {}): void {
    const onGraceOver = () => {
      this.count--
      forget()
      if (this.count === 0) this.grace.onOver()
    }
    if (!this.command.isRunning) {
      forget()
      return
    }
    const timer = setTimeout(onGraceOver, this.grace.ms)
    timer.unref()
    void this.command.ended.then(() => {
      clearTimeout(timer)
      forget()
    })
  }

  /** Finds the disconnected reader at this offset or nearest beyond it, because the last bytes may be in transit. */
  private findFormer({ stdout, stderr }: OutputOffset): Reader | undefined {
    const ahead = ({ offset }: Reader) => offset.stdout - stdout + offset.stderr - stderr
    return [...this.absent]
      .filter(
        ({ hasDisconnected, offset }) =>
          !hasDisconnected && offset.stdout >= stdout && offset.stderr >= stderr,
      )
      .sort((a, b) => ahead(a) - ahead(b))[0]
  }
}
