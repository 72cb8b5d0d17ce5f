/** Matches bidirectional formatting, line separators, and control characters other than tab and newline. */
export const controlCharacters =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the expression detects control characters
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g

/** Replaces control characters with U+FFFD. Converts CR LF to LF. */
export const printable = (text: string): string =>
  text.replace(/\r+(?=\n|$)/g, '').replace(controlCharacters, '\ufffd')

/** Replaces tabs and line breaks, which separate fields and rows in output for programs, with spaces. */
export const unbroken = (text: string): string => text.replace(/[\t\r\n]+/g, ' ')

export const oneLine = (text: string): string => printable(unbroken(text))

/** Escapes control characters without changing the JSON value. */
export const printableJson = (json: string): string =>
  json.replace(controlCharacters, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** Maximum length of a control string, such as OSC. Longer strings are shown as text. */
const maxStringLength = 8192
const stringStart =
  '(?:\\u001b[\\]PX^_]|[\\u0090\\u0098\\u009d-\\u009f])' +
  `[^\\n\\r\\u0007\\u001b\\u0090\\u0098\\u009c-\\u009f]{0,${maxStringLength}}`
const parameters = '(?:\\u001b\\[|\\u009b)([0-?]{0,255})([ -/]{0,15}'
/** Matches control strings, control sequences with parameters, and short escape sequences. */
const sequence = new RegExp(
  `${stringStart}(?:\\u0007|\\u001b\\\\|\\u009c)|${parameters}[@-~])|\\u001b[ -/]{0,15}[0-~]`,
  'g',
)
/** Matches an incomplete escape sequence at the end of the text. */
const unfinished = new RegExp(`(?:${stringStart}\\u001b?|${parameters})|\\u001b[ -/]{0,15})$`)

/** Text and its SGR parameters, such as `1` or `38;5;208`. */
interface Styled {
  text: string
  style: string[]
}

/** Splits a line into styled pieces. Like `less -R`, keeps only colors and styles such as bold. */
export function* styledPieces(line: string): Generator<Styled> {
  for (const { text, style } of splitStyles(line, new Map())) {
    const shown = text.replace(controlCharacters, '')
    if (shown !== '') yield { text: shown, style: [...style.values()] }
  }
}

/** Splits text at escape sequences. The pieces may still contain other control characters. */
function* splitStyles(text: string, before: Style): Generator<{ text: string; style: Style }> {
  let style = before
  let at = 0
  for (const match of text.matchAll(sequence)) {
    yield { text: text.slice(at, match.index), style }
    at = match.index + match[0].length
    if (match[2] === 'm' && /^[\d:;]*$/.test(match[1]!)) style = styleAfter(style, match[1]!)
  }
  yield { text: text.slice(at), style }
}

/**
 * Makes untrusted output safe for a terminal: keeps only text, tabs, line ends and, with `styles`, colors and
 * styles such as bold. Converts carriage returns to line ends, because overwriting a line could hide text.
 */
export class OutputCleaner {
  private readonly styles: boolean
  private decoder = new TextDecoder()
  /** Start of an escape sequence that might continue in the next chunk. */
  private pending = ''
  private style: Style = new Map()
  private isAfterReturn = false

  constructor({ styles }: { styles: boolean }) {
    this.styles = styles
  }

  clean(bytes: Uint8Array): string {
    const text = this.pending + this.decoder.decode(bytes, { stream: true })
    const end = text.search(unfinished)
    this.pending = end < 0 ? '' : text.slice(end)
    return this.show(end < 0 ? text : text.slice(0, end))
  }

  /** Returns the remaining text. Call at the end of the output and before a gap (dropped output). */
  flush(): string {
    const rest = this.pending + this.decoder.decode()
    this.pending = ''
    return this.show(rest)
  }

  private show(text: string): string {
    let shown = ''
    for (const piece of splitStyles(text, this.style)) {
      this.style = piece.style
      const codes = this.styles ? [...piece.style.values()] : []
      const lines = this.endLines(piece.text).split('\n')
      shown += lines
        .map((line) => line.replace(controlCharacters, ''))
        .map((line) => (line === '' ? '' : withStyle({ text: line, style: codes })))
        .join('\n')
    }
    return shown
  }

  /** Converts CR LF and CR to LF, even across chunks. */
  private endLines(text: string): string {
    if (text === '') return ''
    const rest = this.isAfterReturn ? text.replace(/^\r*\n?/, '') : text
    const isOnlyReturns = this.isAfterReturn && /^\r*$/.test(text)
    this.isAfterReturn = isOnlyReturns || text.endsWith('\r')
    return rest.replace(/\r+\n?/g, '\n')
  }
}

type Style = ReadonlyMap<string, string>

export function withStyle({ text, style }: Styled): string {
  const on = style.map((code) => `\u001b[${code}m`).join('')
  const off = style.map((code) => `\u001b[${kindOf(code)}m`)
  return `${on}${text}${off.reverse().join('')}`
}

/** Returns the SGR code that turns a style off. Bold and dim share one code. */
function kindOf(code: string): string {
  const number = Number(code.split(';', 1)[0])
  if (number === 1 || number === 2) return '22'
  if (number < 10) return String(20 + number)
  return (number >= 30 && number < 40) || (number >= 90 && number < 100) ? '39' : '49'
}

/** Applies an SGR sequence to a style. @param parameters separated by semicolons or colons */
function styleAfter(before: Style, parameters: string): Style {
  const style = new Map(before)
  const plain = parameters.replaceAll(/(?<=^|;)4:(\d+)/g, (_, kind) => (kind === '0' ? '24' : '4'))
  const codes = plain.replaceAll(/:+/g, ';').split(';').map(Number)
  for (let at = 0; at < codes.length; at++) {
    const code = codes[at]!
    if (code === 38 || code === 48 || code === 58) {
      const length = codes[at + 1] === 5 ? 3 : 5
      const color = codes.slice(at, at + length)
      at += length - 1
      const isColor =
        [2, 5].includes(color[1]!) && color.length === length && color.every((part) => part < 256)
      if (isColor && code !== 58) style.set(code === 38 ? '39' : '49', color.join(';'))
    } else if (code === 0) style.clear()
    else if ([1, 2, 3, 4, 7, 9].includes(code))
      style.set(code < 3 ? `22 ${code}` : String(20 + code), String(code))
    else if ((code >= 30 && code < 38) || (code >= 90 && code < 98)) style.set('39', String(code))
    else if ((code >= 40 && code < 48) || (code >= 100 && code < 108)) style.set('49', String(code))
    else for (const kind of style.keys()) if (kind.split(' ', 1)[0] === String(code)) style.delete(kind)
  }
  return style
}
