/** Lets only so many pieces of work on one thing run at a time, in the order in which they came. */
export function makeTurns(atOnce = 1) {
  const lines = new Map<string, { working: number; waiting: (() => void)[] }>()
  return async <T>(key: string, work: () => Promise<T>): Promise<T> => {
    const line = lines.get(key) ?? { working: 0, waiting: [] }
    lines.set(key, line)
    if (line.working < atOnce) line.working++
    else await new Promise<void>((go) => line.waiting.push(go))
    try {
      return await work()
    } finally {
      // Hands the free turn to the next in line.
      const next = line.waiting.shift()
      if (next) next()
      else if (--line.working === 0) lines.delete(key)
    }
  }
}
