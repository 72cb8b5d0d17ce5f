/** Passes stdin to Ink only while the picker uses the terminal. Shells and editors read stdin themselves. */
import { Readable } from 'node:stream'
import type { ReadStream } from 'node:tty'

export class TerminalInput extends Readable {
  readonly isTTY = true
  private readonly terminal: ReadStream
  private readonly receive = (chunk: Buffer) => void this.push(chunk)

  /** @param onGone called when the terminal is closed or fails */
  constructor(terminal: ReadStream, onGone: () => void) {
    super()
    this.terminal = terminal
    terminal.on('end', onGone).on('error', onGone)
  }

  setRawMode(isRaw: boolean): this {
    this.terminal.setRawMode(isRaw)
    return this
  }

  /**
   * Starts passing input to Ink, which calls this method before it uses the terminal. Ink calls `unref`
   * before another program uses the terminal, and on exit.
   */
  ref(): this {
    this.terminal.off('data', this.receive).on('data', this.receive).resume()
    return this
  }

  unref(): this {
    this.terminal.off('data', this.receive).pause()
    return this
  }

  override _read(): void {}
}
