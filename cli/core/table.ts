import { oneLine, unbroken } from './printable.ts'

const minCells = 4
/** Minimum readable width. Spare columns are omitted if other columns would become narrower than this. */
const readableCells = 16
const gap = '  '

/**
 * Aligns columns for terminals, or separates fields with tabs for programs.
 * @param spare columns to omit on a narrow terminal, in this order
 */
export function table(
  head: string[],
  rows: string[][],
  paintHead: (text: string) => string,
  spare: string[] = [],
): string {
  if (!process.stdout.isTTY) return rows.map((row) => `${row.map(unbroken).join('\t')}\n`).join('')
  const maxCells = process.stdout.columns || 80
  const clean = rows.map((row) => row.map(oneLine))
  const whole = head.map((title, at) =>
    Math.max(...[title, ...clean.map((row) => row[at] ?? '')].map(cellsOf)),
  )
  const readable = whole.map((cells, at) => (at === 0 ? cells : Math.min(cells, readableCells)))
  let columns = [...head.keys()]
  for (const title of spare) {
    if (lineCells(columns.map((at) => readable[at]!)) <= maxCells) break
    columns = columns.filter((at) => head[at] !== title)
  }
  const wanted = columns.map((at) => whole[at]!)
  const widths = fitWidths(wanted, maxCells)
  const line = (row: string[]) => {
    const cells = columns.map((at, column) => pad(cut(row[at] ?? '', widths[column]!), widths[column]!))
    return cells.join(gap).trimEnd()
  }
  return [paintHead(line(head)), ...clean.map(line)].map((text) => `${text}\n`).join('')
}

const lineCells = (widths: number[]): number =>
  widths.reduce((cells, width) => cells + width, gap.length * (widths.length - 1))

/**
 * Narrows the widest columns until a row fits. Narrows the first column last, because it identifies the row.
 */
function fitWidths(widths: number[], maxCells: number): number[] {
  const fitted = [...widths]
  for (const first of [1, 0]) {
    while (lineCells(fitted) > maxCells) {
      const widest = fitted.indexOf(Math.max(...fitted.slice(first)), first)
      if ((fitted[widest] ?? 0) <= minCells) break
      fitted[widest]! -= 1
    }
  }
  return fitted
}

export function cut(text: string, cells: number): string {
  if (cellsOf(text) <= cells) return text
  let kept = ''
  for (const character of text) {
    if (cellsOf(kept + character) > cells - 1) break
    kept += character
  }
  return `${kept}…`
}

const pad = (text: string, cells: number): string => text + ' '.repeat(Math.max(0, cells - cellsOf(text)))

/** Counts terminal cells without string-width, which takes longer to import than Node takes to start. */
function cellsOf(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length
  let cells = 0
  for (const character of text) cells += none.test(character) ? 0 : two.test(character) ? 2 : 1
  return cells
}

const none = /[\p{Mn}\p{Me}\p{Cf}]/u
const two =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u
