/**
 * The terminal's keys as Ink wants to read them. Ink turns the stream that it reads into text for good and
 * keeps hold of it; this one stands between, so that a shell or an editor that gets the terminal gets
 * stdin as it was: bytes, and nobody else reading.
 */
import { Readable } from 'node:stream'
import type { ReadStream } from 'node:tty'

export class TerminalInput extends Readable {
  readonly isTTY = true
  private readonly terminal: ReadStream
  private readonly receive = (chunk: Buffer) => void this.push(chunk)

  /** @param onGone told when the terminal is gone */
  constructor(terminal: ReadStream, onGone: () => void) {
    super()
    this.terminal = terminal
    terminal.on('end', onGone).on('error', onGone)
  }

  setRawMode(isRaw: boolean): this {
    this.terminal.setRawMode(isRaw)
    return this
  }

  /** Ink calls it when it begins to read. */
  ref(): this {
    this.terminal.off('data', this.receive).on('data', this.receive).resume()
    return this
  }

  /** Ink calls it when it hands the terminal over, and when it ends. */
  unref(): this {
    this.terminal.off('data', this.receive).pause()
    return this
  }

  override _read(): void {}
}
