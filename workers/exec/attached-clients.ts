/**
 * The clients of a command: those that wait for it or read its output, and those that left and may come back. A command
 * may run without clients for its grace.
 */
import type { OutputOffset } from '../../shared/contract/exec-events.ts'
import type { OutputLog, Reader } from './output-log.ts'

export interface Awaited {
  readonly log: OutputLog
  readonly isRunning: boolean
  readonly ended: Promise<void>
}

export interface Grace {
  /** Milliseconds until a client must be back. */
  ms: number
  /** Called when a client has not come back in time, and no other is there. May be called again. */
  onOver(): void
}

export class AttachedClients {
  private readonly command: Awaited
  private readonly grace: Grace
  /** How many clients wait for it or read it, including those within their grace. */
  private present = 0
  /** Readers that left and may come back: the command waits for them too. */
  private readonly absent = new Set<Reader>()

  constructor(command: Awaited, grace: Grace) {
    this.command = command
    this.grace = grace
  }

  /** A reader from an offset on. While it is there, and within its grace, the command waits for it. */
  attach(from?: OutputOffset): Reader {
    this.arrive()
    const reader = this.command.log.read(from)
    // The client is back and reads on with this reader, so the command need not wait for the broken connection too.
    if (from) this.formerOf(from)?.leave()
    return reader
  }

  /** Its client has left, and may come back. May be called again. */
  detach(reader: Reader): void {
    if (reader.isAbsent) return
    reader.isAbsent = true
    this.absent.add(reader)
    this.leave(() => {
      this.absent.delete(reader)
      reader.leave()
    })
  }

  /** A client waits for the command without reading its output. */
  arrive(): void {
    this.present++
  }

  /** A client has left. A command that needs a client is ended when none comes back. */
  leave(forget: () => void = () => {}): void {
    const goOn = () => {
      this.present--
      forget()
      if (this.present === 0) this.grace.onOver()
    }
    if (!this.command.isRunning) {
      forget()
      return
    }
    const timer = setTimeout(goOn, this.grace.ms)
    timer.unref()
    void this.command.ended.then(() => {
      clearTimeout(timer)
      forget()
    })
  }

  /** The reader that this client most likely was: it read up to this offset, or further, since some may not have arrived. */
  private formerOf({ stdout, stderr }: OutputOffset): Reader | undefined {
    const ahead = ({ offset }: Reader) => offset.stdout - stdout + offset.stderr - stderr
    return [...this.absent]
      .filter(
        ({ hasDisconnected, offset }) =>
          !hasDisconnected && offset.stdout >= stdout && offset.stderr >= stderr,
      )
      .sort((a, b) => ahead(a) - ahead(b))[0]
  }
}
