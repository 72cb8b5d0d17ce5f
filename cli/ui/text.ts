/** Text from elsewhere, made fit for cells of a screen. */
import { stripVTControlCharacters } from 'node:util'
import stringWidth from 'string-width'
import wrapAnsi from 'wrap-ansi'
import { oneLine as plainLine, steering } from '../core/printable.ts'

const tabWidth = 8

/** One line of a name or a message: nothing in it steers the terminal or breaks the line. */
export const oneLine = (text: string): string => plainLine(stripVTControlCharacters(text))

/** A line that a program printed, without escape sequences and overwritten text; tabs become spaces. */
export function printedLine(line: string): string {
  const plain = stripVTControlCharacters(line).replace(/\r+$/, '')
  const visible = plain.slice(plain.lastIndexOf('\r') + 1)
  return expandTabs(visible).replace(steering, '')
}

function expandTabs(line: string): string {
  if (!line.includes('\t')) return line
  let text = ''
  for (const [index, part] of line.split('\t').entries()) {
    if (index > 0) text += ' '.repeat(tabWidth - (stringWidth(text) % tabWidth))
    text += part
  }
  return text
}

/** Shows where a line ends, in text that has only one line for it. */
export const showLines = (text: string): string => text.replaceAll('\n', '↵')

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

/**
 * Breaks a line where the screen ends. Not by wrap-ansi, which turns some letters into others (NFC).
 * @returns at least one row
 */
export function wrap(line: string, width: number): string[] {
  if (width < 1) return ['']
  // A short cut: most lines are plain ASCII, and there may be many thousands.
  if (/^[\x20-\x7e]*$/.test(line)) {
    if (line.length <= width) return [line]
    return Array.from({ length: Math.ceil(line.length / width) }, (_, row) =>
      line.slice(row * width, (row + 1) * width),
    )
  }
  const rows: string[] = []
  let row = ''
  let filled = 0
  for (const { segment } of graphemes.segment(line)) {
    const cells = stringWidth(segment)
    if (filled + cells > width && row !== '') {
      rows.push(row)
      row = ''
      filled = 0
    }
    // A wide character does not fit on a screen of one column.
    row += cells > width ? '\ufffd' : segment
    filled += Math.min(cells, width)
  }
  return [...rows, row]
}

/** The same for sentences: between words, where that is possible. */
export const wrapWords = (text: string, width: number): string[] =>
  wrapAnsi(text, width, { hard: true }).split('\n')
