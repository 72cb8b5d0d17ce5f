/**
 * Returns one page of a list. The id of its last item serves as the cursor, because ids sort by creation
 * time.
 * @param items the items of the page; one more than `limit` indicates that another page follows
 */
export function takePage<T extends { id: string }>(items: T[], limit: number) {
  const data = items.slice(0, limit)
  const last = data.at(-1)
  return { data, next_cursor: last && items.length > limit ? last.id : null }
}
