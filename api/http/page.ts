/**
 * Returns one page of a list. Ids sort by creation time, so the last item's id is the cursor for the next
 * page.
 * @param items in order; one item more than `limit` indicates that another page follows
 */
export function takePage<T extends { id: string }>(items: T[], limit: number) {
  const data = items.slice(0, limit)
  const last = data.at(-1)
  return { data, next_cursor: last && items.length > limit ? last.id : null }
}
