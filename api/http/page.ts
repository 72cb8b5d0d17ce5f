/**
 * Returns one page of a list, whose ids sort by creation time.
 * @param items one item more than `limit` indicates that another page follows
 */
export function takePage<T extends { id: string }>(items: T[], limit: number) {
  const data = items.slice(0, limit)
  const last = data.at(-1)
  return { data, next_cursor: last && items.length > limit ? last.id : null }
}
