/** Up and down in a text of which only some lines are here. */
import { type Place, start } from './file-text.ts'

export interface Lines {
  /** Lines of the whole; undefined until that is known. */
  total: number | undefined
  /** The rows of a line on a screen so wide; undefined while it is not here. */
  rowsOf(line: number, width: number): string[] | undefined
  has(first: number, last: number): boolean
  /** Makes sure that these lines are here. */
  load(first: number, last: number): Promise<void>
}

/**
 * Goes so many rows on, or back, as far as lines are here.
 * @returns where that is, and how many rows are left to go
 */
export function walk(text: Lines, width: number, from: Place, by: number): { place: Place; left: number } {
  let { line, row } = from
  let left = by
  while (left > 0) {
    const rows = text.rowsOf(line, width)
    if (rows === undefined) break
    if (row + left < rows.length) return { place: { line, row: row + left }, left: 0 }
    if (line >= (text.total ?? 0) || text.rowsOf(line + 1, width) === undefined) {
      left -= rows.length - 1 - row
      return { place: { line, row: rows.length - 1 }, left: line >= (text.total ?? 0) ? 0 : left }
    }
    left -= rows.length - row
    line += 1
    row = 0
  }
  while (left < 0) {
    if (row + left >= 0) return { place: { line, row: row + left }, left: 0 }
    const rows = line === 1 ? undefined : text.rowsOf(line - 1, width)
    if (rows === undefined) return { place: { line, row: 0 }, left: left + row }
    left += row + 1
    line -= 1
    row = rows.length - 1
  }
  return { place: { line, row }, left }
}

/** The place at which the last row is the last on the screen. */
export function lastPlace(text: Lines, width: number, height: number): Place {
  const { total = 0 } = text
  const rows = text.rowsOf(total, width)
  if (total === 0 || rows === undefined) return start
  return walk(text, width, { line: total, row: rows.length - 1 }, 1 - height).place
}

/** Not so far down that rows of the screen stay empty. */
export function within(text: Lines, width: number, height: number, place: Place): Place {
  const { total } = text
  // Only near the end the last line matters, and only where it is here.
  if (total === undefined || total - place.line > height || !text.has(Math.max(1, total - height), total))
    return place
  const last = lastPlace(text, width, height)
  const isBeyond = place.line > last.line || (place.line === last.line && place.row > last.row)
  return isBeyond ? last : place
}

/** The rows that are shown; undefined for those that are not here yet. */
export function rowsFrom(
  text: Lines,
  width: number,
  height: number,
  { line, row }: Place,
): (string | undefined)[] {
  const shown: (string | undefined)[] = []
  for (let at = line; shown.length < height && at <= (text.total ?? 0); at++) {
    const rows = text.rowsOf(at, width)
    if (rows === undefined) shown.push(undefined)
    else shown.push(...rows.slice(at === line ? Math.min(row, rows.length - 1) : 0))
  }
  return shown.slice(0, height)
}
