/** Runs work one at a time, or a few at a time, for each key. */

interface Line {
  running: number
  waiting: Set<() => void>
}

/**
 * Limits how many pieces of work with the same key run at the same time. The others wait in order of arrival.
 * @param waitMs milliseconds that a piece of work may wait; by default no limit
 * @returns a function that runs work with a key. It throws when the wait takes too long
 */
export function limitByKey(atOnce = 1, waitMs?: number) {
  const lines = new Map<string, Line>()
  const turn = ({ waiting }: Line) =>
    new Promise<void>((resolve, reject) => {
      const begin = () => {
        clearTimeout(timer)
        resolve()
      }
      const giveUp = () => {
        waiting.delete(begin)
        reject(new Error('timeout exceeded while other work of the same key runs'))
      }
      const timer = waitMs === undefined ? undefined : setTimeout(giveUp, waitMs)
      waiting.add(begin)
    })
  return async <T>(key: string, work: () => Promise<T>): Promise<T> => {
    const line = lines.get(key) ?? { running: 0, waiting: new Set() }
    lines.set(key, line)
    if (line.running < atOnce) line.running++
    else await turn(line)
    try {
      return await work()
    } finally {
      // The next one starts before a new one can take its place.
      const [next] = line.waiting
      if (next) {
        line.waiting.delete(next)
        next()
      } else if (--line.running === 0) lines.delete(key)
    }
  }
}
