/** Sanitizes untrusted text, and fits it to a width in terminal cells. */
import { stripVTControlCharacters } from 'node:util'
import stringWidth from 'string-width'
import wrapAnsi from 'wrap-ansi'
import { oneLine as plainLine, styledPieces, withStyle } from '../core/printable.ts'

const tabWidth = 8

/** Removes control characters and escape sequences. */
export const oneLine = (text: string): string => plainLine(stripVTControlCharacters(text))

/**
 * Formats a line of output for display. Keeps colors, expands tabs, and removes overwritten text and other
 * escape sequences.
 */
export function printedLine(line: string): string {
  const whole = line.replace(/\r+$/, '')
  const visible = whole.slice(whole.lastIndexOf('\r') + 1)
  let column = 0
  return [...styledPieces(visible)]
    .map(({ text, style }) => {
      const expanded = expandTabs(text, column)
      column += stringWidth(expanded)
      return withStyle({ text: expanded, style })
    })
    .join('')
}

function expandTabs(line: string, column: number): string {
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

/** Splits a line into one or more rows. Does not use wrap-ansi, which would normalize characters (NFC). */
export function wrap(line: string, width: number): string[] {
  if (width < 1) return ['']
  const rows: string[] = []
  let row = ''
  let filled = 0
  for (const { text, style } of styledPieces(line)) {
    let part = ''
    const close = () => {
      if (part !== '') row += withStyle({ text: part, style })
      part = ''
    }
    for (const { segment } of graphemes.segment(text)) {
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

// `stringWidth` is much slower.
const isAscii = (text: string): boolean => /^[\x20-\x7e]*$/.test(text)

export const wrapWords = (text: string, width: number): string[] =>
  wrapAnsi(text, width, { hard: true }).split('\n')
