/** Pages of a list, newest first: ids sort by time, so the last one shown is where the next begins. */
/** @param items one more than `limit`, if there are more */
export function takePage<T extends { id: string }>(items: T[], limit: number) {
  const data = items.slice(0, limit)
  const last = data.at(-1)
  return { data, next_cursor: last && items.length > limit ? cursorBehind(last) : null }
}

/** The cursor of the page that follows one which ends with this item. */
export const cursorBehind = ({ id }: { id: string }): string => id

/** @returns the id that the previous page ended with, null for the first page */
export const readCursor = (cursor: string | undefined): string | null => cursor ?? null
