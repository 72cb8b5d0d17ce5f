/**
 * Tracks a command's clients, including disconnected ones that may reconnect. After its last client has
 * disconnected, the command keeps running for a grace period.
 */
import type { OutputOffset } from '../../shared/contract/exec-events.ts'
import type { OutputLog, Reader } from './output-log.ts'

export interface Awaited {
  readonly log: OutputLog
  readonly isRunning: boolean
  readonly ended: Promise<void>
}

export interface Grace {
  /** Time within which a disconnected client can reconnect, in milliseconds. */
  ms: number
  /** Called when the grace period has elapsed and no client is attached. May be called more than once. */
  onOver(): void
}

export class AttachedClients {
  private readonly command: Awaited
  private readonly grace: Grace
  /** Number of clients, including disconnected clients whose grace period is not over. */
  private count = 0
  /** Readers whose clients have disconnected but may reconnect. The command still blocks on these readers. */
  private readonly absent = new Set<Reader>()

  constructor(command: Awaited, grace: Grace) {
    this.command = command
    this.grace = grace
  }

  /**
   * Adds a reader that starts at an offset. The command blocks on the reader until it leaves or its grace
   * period is over.
   */
  attach(from?: OutputOffset): Reader {
    this.arrive()
    const reader = this.command.log.read(from)
    // The new reader replaces the reader of the broken connection, so the command no longer blocks on the old
    // reader.
    if (from) this.findFormer(from)?.leave()
    return reader
  }

  /** Starts the grace period of a reader whose client has disconnected. May be called more than once. */
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

  /** Removes a client after its grace period, or when the command ends. */
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

  /**
   * Returns the disconnected reader with the nearest offset that is not smaller than the given one. Its
   * offset may be larger, because the last bytes may still have been in transit.
   */
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
