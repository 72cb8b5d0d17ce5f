/** Serves groups in rotation, and the items of each group in order of arrival. */
export type RoundRobinQueue<T> = Map<string, T[]>

export function append<T>(queue: RoundRobinQueue<T>, group: string, item: T): void {
  const waiting = queue.get(group)
  if (waiting) waiting.push(item)
  else queue.set(group, [item])
}

/** Removes and returns the next item. The item's group moves to the end of the rotation. */
export function takeFirst<T>(queue: RoundRobinQueue<T>): T | undefined {
  const [first] = queue
  if (!first) return undefined
  const [group, waiting] = first
  queue.delete(group)
  const item = waiting.shift()
  if (waiting.length > 0) queue.set(group, waiting)
  return item
}
