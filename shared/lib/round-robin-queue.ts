/** A round-robin queue: groups are served in rotation, and each group in order of arrival. */
export type RoundRobinQueue<T> = Map<string, T[]>

export function append<T>(turns: RoundRobinQueue<T>, group: string, one: T): void {
  const line = turns.get(group)
  if (line) line.push(one)
  else turns.set(group, [one])
}

/** Removes and returns the next waiter, if there is one, and moves its group to the end. */
export function takeFirst<T>(turns: RoundRobinQueue<T>): T | undefined {
  const [first] = turns
  if (!first) return undefined
  const [group, line] = first
  turns.delete(group)
  const one = line.shift()
  if (line.length > 0) turns.set(group, line)
  return one
}
