/** Waiters for the same thing: groups take turns, and within a group the first comes first. */
export type Turns<T> = Map<string, T[]>

export function append<T>(turns: Turns<T>, group: string, one: T): void {
  const line = turns.get(group)
  if (line) line.push(one)
  else turns.set(group, [one])
}

/** @returns the next waiter, undefined when there is none; its group goes to the end of the line */
export function takeFirst<T>(turns: Turns<T>): T | undefined {
  const [first] = turns
  if (!first) return undefined
  const [group, line] = first
  turns.delete(group)
  const one = line.shift()
  if (line.length > 0) turns.set(group, line)
  return one
}
