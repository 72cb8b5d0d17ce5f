/** Recognizes the keys that detach the user from a terminal and leave the command running. */
import { CliError } from '../core/errors.ts'

export const defaultDetachKeys = 'ctrl-p,ctrl-q'
/** How long typed keys are held back, in milliseconds, because they might begin the detach keys. */
const heldMs = 1_000

/**
 * Returns the bytes that a terminal sends for the detach keys.
 * @param text Docker's format: keys separated by commas, each a character or `ctrl-` followed by one of a-z,
 * @, [, \, ], ^ or _. `none` means no keys.
 * @throws {CliError} `usage` if the text is not in this format
 */
export function readDetachKeys(text: string): Buffer {
  if (text === 'none') return Buffer.alloc(0)
  const bytes = text.split(',').map((key) => {
    const [, letter] = /^ctrl-([a-z@[\\\]^_])$/i.exec(key) ?? []
    if (letter !== undefined) return letter.toUpperCase().charCodeAt(0) - 64
    return /^[!-~]$/.test(key) ? key.charCodeAt(0) : undefined
  })
  if (bytes.every((byte) => byte !== undefined)) return Buffer.from(bytes)
  throw new CliError('usage', `--detach-keys ${JSON.stringify(text)} is invalid.`, {
    hint: 'Pass letters and ctrl-LETTER keys separated by commas, such as `ctrl-a,d`, or `none` to disable detaching.',
  })
}

export class DetachKeys {
  private readonly keys: Buffer
  private readonly send: (bytes: Buffer) => void
  private held = 0
  private timer: NodeJS.Timeout | undefined

  constructor(keys: Buffer, send: (bytes: Buffer) => void) {
    this.keys = keys
    this.send = send
  }

  /** Sends typed bytes that cannot belong to the detach keys. Returns whether all detach keys were typed. */
  type(typed: Buffer): boolean {
    clearTimeout(this.timer)
    const bytes = Buffer.concat([this.keys.subarray(0, this.held), typed])
    const at = this.keys.length === 0 ? -1 : bytes.indexOf(this.keys)
    this.held = at < 0 ? this.beginningAtEndOf(bytes) : 0
    const passed = bytes.subarray(0, at < 0 ? bytes.length - this.held : at)
    if (passed.length > 0) this.send(passed)
    if (this.held > 0) this.timer = setTimeout(() => this.release(), heldMs)
    return at >= 0
  }

  end(): void {
    clearTimeout(this.timer)
  }

  private release(): void {
    this.send(this.keys.subarray(0, this.held))
    this.held = 0
  }

  /** Returns how many bytes at the end of `bytes` might begin the detach keys. */
  private beginningAtEndOf(bytes: Buffer): number {
    for (let count = this.keys.length - 1; count > 0; count--) {
      if (bytes.subarray(-count).equals(this.keys.subarray(0, count))) return count
    }
    return 0
  }
}
