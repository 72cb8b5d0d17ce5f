/**
 * Tracks terminal modes that a program has changed, such as the alternate screen. The client resets them while
 * it is disconnected, and restores them afterwards.
 */
export class ScreenModes {
  /** The modes that the program has turned on or off, in the order of the changes. */
  private readonly switched = new Map<string, boolean>()
  private unfinishedSequence = ''

  track(output: Uint8Array): void {
    const text = this.unfinishedSequence + Buffer.from(output).toString('latin1')
    for (const { groups } of text.matchAll(switches)) {
      const { modes, way, keypad } = groups!
      for (const mode of modes?.split(';') ?? []) this.set(mode, way === 'h')
      if (keypad !== undefined) this.set(keypadMode, keypad === '=')
    }
    this.unfinishedSequence = unfinished.exec(text)?.[0] ?? ''
  }

  /** Escape sequence that resets the changed modes for the local shell. */
  get resetSequence(): string {
    const text = this.changed.toReversed().map(([mode, isOn]) => sequenceFor(mode, !isOn))
    return text.length === 0 ? '' : `${text.join('')}\u001b[m`
  }

  get restoreSequence(): string {
    return this.changed.map(([mode, isOn]) => sequenceFor(mode, isOn)).join('')
  }

  private get changed(): [string, boolean][] {
    return [...this.switched].filter(([mode, isOn]) => isOn !== enabledByDefault.has(mode))
  }

  private set(mode: string, isOn: boolean): void {
    this.switched.delete(mode)
    if (trackedModes.has(mode)) this.switched.set(mode, isOn)
  }
}

const enabledByDefault = new Set(['7', '25'])
const keypadMode = 'keypad'
const trackedModes = new Set([
  ...enabledByDefault,
  ...['1', '9', '47', '1000', '1002', '1003', '1004', '1005', '1006', '1015', '1047', '1049', '2004'],
  keypadMode,
])
// biome-ignore lint/suspicious/noControlCharactersInRegex: matches control characters
const switches = /\u001b(?:\[\?(?<modes>[\d;]+)(?<way>[hl])|(?<keypad>[=>]))/g
// biome-ignore lint/suspicious/noControlCharactersInRegex: matches control characters
const unfinished = /\u001b(?:\[(?:\?[\d;]{0,40})?)?$/

function sequenceFor(mode: string, isOn: boolean): string {
  if (mode === keypadMode) return `\u001b${isOn ? '=' : '>'}`
  return `\u001b[?${mode}${isOn ? 'h' : 'l'}`
}
