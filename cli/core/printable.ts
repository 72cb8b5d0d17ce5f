/** Text from elsewhere on its way to a terminal: nothing in it steers that. */

/** Control characters but tab and newline, and those that turn the direction of what follows. */
export const steering =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g

/** Lines stay lines, those that end in CR LF too. */
export const printable = (text: string): string =>
  text.replace(/\r+(?=\n|$)/g, '').replace(steering, '\ufffd')

/** What must stay on its line, for programs. */
export const unbroken = (text: string): string => text.replace(/[\t\r\n]+/g, ' ')

/** The same for a terminal. */
export const oneLine = (text: string): string => printable(unbroken(text))

/** JSON that means the same. */
export const printableJson = (json: string): string =>
  json.replace(steering, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** Titles, links and other strings with their end; sequences with parameters; the short ones. */
const sequence =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  /(?:\u001b[\]PX^_]|[\u0090\u0098\u009d-\u009f])[^\u0007\u001b\u0090\u0098\u009c-\u009f]*(?:\u0007|\u001b\\|\u009c)|(?:\u001b\[|\u009b)([\u0030-\u003f]*)([\u0020-\u002f]*[\u0040-\u007e])|\u001b[\u0020-\u002f]*[\u0030-\u007e]/g

/** Text in one style: the parameters that switch it on, such as `1` or `38;5;208`. */
export interface Styled {
  text: string
  style: string[]
}

/**
 * A line as a program printed it, in pieces of one style each, as `less -R` shows it: colours, bold and the like stay.
 * Everything else that steers a terminal is left out, hidden and blinking letters too.
 */
export function* styledPieces(line: string): Generator<Styled> {
  let style = new Map<string, string>()
  let at = 0
  const until = (end: number) => ({
    text: line.slice(at, end).replace(steering, ''),
    style: [...style.values()],
  })
  for (const match of line.matchAll(sequence)) {
    const piece = until(match.index)
    if (piece.text !== '') yield piece
    at = match.index + match[0].length
    if (match[2] === 'm' && /^[\d:;]*$/.test(match[1]!)) style = styleAfter(style, match[1]!)
  }
  const last = until(line.length)
  if (last.text !== '') yield last
}

/** Switches the style on and off again, each part by itself. */
export function withStyle({ text, style }: Styled): string {
  const on = style.map((code) => `\u001b[${code}m`).join('')
  const off = style.map((code) => `\u001b[${kindOf(code)}m`)
  return `${on}${text}${off.reverse().join('')}`
}

/** What ends a style; styles that one code ends take each other's place, but bold and dim. */
function kindOf(code: string): string {
  const number = Number(code.split(';', 1)[0])
  if (number === 1 || number === 2) return '22'
  if (number < 10) return String(20 + number)
  return (number >= 30 && number < 40) || (number >= 90 && number < 100) ? '39' : '49'
}

/** Select Graphic Rendition, as far as it colours letters. @param parameters also in the form with colons */
function styleAfter(before: Map<string, string>, parameters: string): Map<string, string> {
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
