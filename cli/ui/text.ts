/** Sanitizes untrusted text, and fits it to a width in terminal cells. */
import { stripVTControlCharacters } from 'node:util'
import stringWidth from 'string-width'
import wrapAnsi from 'wrap-ansi'
import { controlCharacters, oneLine as plainLine, styledPieces, withStyle } from '../core/printable.ts'

const tabWidth = 8

/** Removes control characters and escape sequences. */
export const oneLine = (text: string): string => plainLine(stripVTControlCharacters(text))

/** Keeps colors, expands tabs, and removes overwritten text and all other escape sequences. */
export function printedLine(line: string): string {
  const whole = line.replace(/\r+$/, '')
  const visible = whole.slice(whole.lastIndexOf('\r') + 1)
  if (!hasSequences.test(visible)) return expandTabs(visible).replace(controlCharacters, '')
  let column = 0
  return [...styledPieces(visible)]
    .map(({ text, style }) => {
      const expanded = expandTabs(text, column)
      column += stringWidth(expanded)
      return withStyle({ text: expanded, style })
    })
    .join('')
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: matches control characters
const hasSequences = /[\u001b\u0080-\u009f]/

function expandTabs(line: string, column = 0): string {
  if (!line.includes('\t')) return line
  let text = ''
  for (const [index, part] of line.split('\t').entries()) {
    if (index > 0) text += ' '.repeat(tabWidth - ((column + stringWidth(text)) % tabWidth))
    text += part
  }
  return text
}

/** Replaces line breaks with ↵. */
export const showLines = (text: string): string => text.replaceAll('\n', '↵')

/** Shortens text to `width` cells by replacing its middle with an ellipsis. */
export function shorten(text: string, width: number): string {
  if (stringWidth(text) <= width) return text
  const letters = [...text]
  while (letters.length > 1 && stringWidth(letters.join('')) >= width) letters.splice(letters.length >> 1, 1)
  return letters.toSpliced((letters.length + 1) >> 1, 0, '…').join('')
}

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

/**
 * Splits a line into rows. Does not use wrap-ansi, which would normalize characters (NFC).
 * @returns at least one row
 */
export function wrap(line: string, width: number): string[] {
  if (width < 1) return ['']
  // A fast path, because most lines are ASCII and there may be thousands of them.
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
      // A wide character does not fit into one column.
      part += cells > width ? '\ufffd' : segment
      filled += Math.min(cells, width)
    }
    close()
  }
  return [...rows, row]
}

const isAscii = (text: string): boolean => /^[\x20-\x7e]*$/.test(text)

/**
 * Splits text into graphemes. The last ASCII letter before other text is segmented with that text, which may
 * start with a combining mark.
 */
function* segmentsOf(text: string): Generator<string> {
  for (const [run] of text.matchAll(/[\x20-\x7e]+(?=[\x20-\x7e]|$)|[\x20-\x7e]?[^\x20-\x7e]+/g)) {
    if (isAscii(run)) yield* run
    else for (const { segment } of graphemes.segment(run)) yield segment
  }
}

export const wrapWords = (text: string, width: number): string[] =>
  wrapAnsi(text, width, { hard: true }).split('\n')
