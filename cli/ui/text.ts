/** Text from elsewhere, made fit for cells of a screen. */
import { stripVTControlCharacters } from 'node:util'
import stringWidth from 'string-width'
import wrapAnsi from 'wrap-ansi'
import { oneLine as plainLine, steering, styledPieces, withStyle } from '../core/printable.ts'

const tabWidth = 8

/** One line of a name or a message: nothing in it steers the terminal or breaks the line. */
export const oneLine = (text: string): string => plainLine(stripVTControlCharacters(text))

/** A line that a program printed, with its colours, without what else steers and overwritten text; tabs become spaces. */
export function printedLine(line: string): string {
  const whole = line.replace(/\r+$/, '')
  const visible = whole.slice(whole.lastIndexOf('\r') + 1)
  if (!hasSequences.test(visible)) return expandTabs(visible).replace(steering, '')
  let column = 0
  return [...styledPieces(visible)]
    .map(({ text, style }) => {
      const expanded = expandTabs(text, column)
      column += stringWidth(expanded)
      return withStyle({ text: expanded, style })
    })
    .join('')
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const hasSequences = /[\u001b\u0080-\u009f]/

/** @param column where the text begins */
function expandTabs(line: string, column = 0): string {
  if (!line.includes('\t')) return line
  let text = ''
  for (const [index, part] of line.split('\t').entries()) {
    if (index > 0) text += ' '.repeat(tabWidth - ((column + stringWidth(text)) % tabWidth))
    text += part
  }
  return text
}

/** Shows where a line ends, in text that has only one line for it. */
export const showLines = (text: string): string => text.replaceAll('\n', '↵')

/** At most so many cells wide; a longer one without its middle. */
export function shorten(text: string, width: number): string {
  if (stringWidth(text) <= width) return text
  const letters = [...text]
  while (letters.length > 1 && stringWidth(letters.join('')) >= width) letters.splice(letters.length >> 1, 1)
  return letters.toSpliced((letters.length + 1) >> 1, 0, '…').join('')
}

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

/**
 * Breaks a line where the screen ends. Not by wrap-ansi, which turns some letters into others (NFC).
 * @returns at least one row
 */
export function wrap(line: string, width: number): string[] {
  if (width < 1) return ['']
  // A short cut: most lines are plain ASCII, and there may be many thousands.
  if (isAscii(line)) {
    if (line.length <= width) return [line]
    return Array.from({ length: Math.ceil(line.length / width) }, (_, row) =>
      line.slice(row * width, (row + 1) * width),
    )
  }
  const rows: string[] = []
  let row = ''
  let filled = 0
  for (const { text, style } of hasSequences.test(line) ? styledPieces(line) : [{ text: line, style: [] }]) {
    let part = ''
    const close = () => {
      if (part !== '') row += withStyle({ text: part, style })
      part = ''
    }
    for (const segment of segmentsOf(text)) {
      const cells = isAscii(segment) ? segment.length : stringWidth(segment)
      if (filled + cells > width && filled > 0) {
        close()
        rows.push(row)
        row = ''
        filled = 0
      }
      // A wide character does not fit on a screen of one column.
      part += cells > width ? '\ufffd' : segment
      filled += Math.min(cells, width)
    }
    close()
  }
  return [...rows, row]
}

const isAscii = (text: string): boolean => /^[\x20-\x7e]*$/.test(text)

/** Graphemes; but letters of ASCII, which fill rows without more ado, up to the last that a mark may follow. */
function* segmentsOf(text: string): Generator<string> {
  for (const [run] of text.matchAll(/[\x20-\x7e]+(?=[\x20-\x7e]|$)|[\x20-\x7e]?[^\x20-\x7e]+/g)) {
    if (isAscii(run)) yield* run
    else for (const { segment } of graphemes.segment(run)) yield segment
  }
}

/** The same for sentences: between words, where that is possible. */
export const wrapWords = (text: string, width: number): string[] =>
  wrapAnsi(text, width, { hard: true }).split('\n')
