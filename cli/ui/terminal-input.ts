/**
 * Sits between stdin and Ink, which would otherwise decode stdin permanently and keep reading it. Shells and
 * editors get stdin unchanged.
 */
import { Readable } from 'node:stream'
import type { ReadStream } from 'node:tty'

export class TerminalInput extends Readable {
  readonly isTTY = true
  private readonly terminal: ReadStream
  private readonly receive = (chunk: Buffer) => void this.push(chunk)

  /** @param onGone called when the terminal is closed */
  constructor(terminal: ReadStream, onGone: () => void) {
    super()
    this.terminal = terminal
    terminal.on('end', onGone).on('error', onGone)
  }

  setRawMode(isRaw: boolean): this {
    this.terminal.setRawMode(isRaw)
    return this
  }

  /** Called by Ink to start reading. */
  ref(): this {
    this.terminal.off('data', this.receive).on('data', this.receive).resume()
    return this
  }

  /** Called by Ink to hand over the terminal, and at the end. */
  unref(): this {
    this.terminal.off('data', this.receive).pause()
    return this
  }

  override _read(): void {}
}
