/** Pages of a list, newest first: ids sort by time, so the last one shown is where the next begins. */
import { invalid } from './validate.ts'

/** @param items one more than `limit`, if there are more */
export function pageOf<T extends { id: string }>(items: T[], limit: number) {
  const data = items.slice(0, limit)
  const last = data.at(-1)
  return { data, next_cursor: last && items.length > limit ? cursorBehind(last) : null }
}

/** The cursor of the page that follows one which ends with this item. */
export const cursorBehind = ({ id }: { id: string }): string => Buffer.from(id).toString('base64url')

/**
 * @returns the id that the previous page ended with, null for the first page
 * @throws {Problem} `invalid_request` for a cursor that is not ours
 */
export function readCursor(cursor: string | undefined): string | null {
  if (cursor === undefined) return null
  const id = Buffer.from(cursor, 'base64url').toString('latin1')
  if (/^[a-z]+_[0-9a-z]{26}$/.test(id)) return id
  throw invalid({ path: 'cursor', message: 'must be the next_cursor of the page before' })
}
