/**
 * Tracks the clients attached to a command. After its last client disconnects, the command keeps running for
 * a grace period, during which a client can reconnect.
 */
import type { OutputOffset } from '../../shared/contract/exec-events.ts'
import { Problem } from '../../shared/platform/problem.ts'
import type { OutputLog, Reader } from './output-log.ts'

/** Maximum number of readers per command, because each one receives its own copy of the output. */
const maxReaders = 8

interface Awaited {
  readonly log: OutputLog
  readonly isRunning: boolean
  readonly ended: Promise<void>
}

interface Grace {
  ms: number
  /** Called when a grace period is over and no client is attached. May be called more than once. */
  onOver(): void
}

export class AttachedClients {
  private readonly command: Awaited
  private readonly grace: Grace
  /** Number of clients, including disconnected clients whose grace period is not over. */
  private count = 0
  /** Readers whose clients have disconnected but may reconnect. Their unread output blocks the command. */
  private readonly absent = new Set<Reader>()

  constructor(command: Awaited, grace: Grace) {
    this.command = command
    this.grace = grace
  }

  /**
   * Adds a reader of the command's output. For a client that reconnects, `from` is the offset up to which the
   * client has received output, and the reader of its broken connection is removed.
   */
  attach(from?: OutputOffset): Reader {
    this.arrive()
    const reader = this.command.log.read(from)
    // The command must no longer block on the reader of the broken connection.
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

  /** @throws {Problem} `rate_limited` if the command already has the maximum number of readers */
  assertReaderLimit(): void {
    if (this.command.log.readerCount < maxReaders) return
    throw new Problem(
      'rate_limited',
      `This command already has ${maxReaders} readers. Disconnect one, or read the output after the command ends.`,
      { retryAfterSeconds: 1 },
    )
  }

  /** Adds a client that waits for the command without reading its output. */
  arrive(): void {
    this.count++
  }

  /** Removes a client after its grace period or when the command ends. `forget` removes its reader. */
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
   * Finds the former reader of a client that reconnects at an offset: the disconnected reader that is the
   * fewest bytes ahead. It can be ahead, because the last bytes sent to the client may not have arrived.
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
