/**
 * Returns one page of a list. The ID of its last item is the cursor, because IDs sort by creation time.
 * @param items up to `limit + 1` items; an item beyond `limit` only shows that another page follows
 */
export function takePage<T extends { id: string }>(items: T[], limit: number) {
  const data = items.slice(0, limit)
  const last = data.at(-1)
  return { data, next_cursor: last && items.length > limit ? last.id : null }
}
