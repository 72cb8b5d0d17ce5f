/**
 * A page of a list, newest first: ids sort by time, so that of the last one shown is the cursor of the next page.
 * @param items one more than `limit`, if there are more
 */
export function takePage<T extends { id: string }>(items: T[], limit: number) {
  const data = items.slice(0, limit)
  const last = data.at(-1)
  return { data, next_cursor: last && items.length > limit ? last.id : null }
}
