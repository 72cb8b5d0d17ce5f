/** Work on one thing, only so much of it at a time, in the order in which it came. */
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
      // Whoever is next takes this place.
      const next = line.waiting.shift()
      if (next) next()
      else if (--line.working === 0) lines.delete(key)
    }
  }
}
