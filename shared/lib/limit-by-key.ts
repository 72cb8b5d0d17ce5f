/** Runs work one at a time, or a few at a time, for each key. */

interface Line {
  running: number
  waiting: Set<() => void>
}

/**
 * Lets only so many pieces of work under each key run at once. The others wait in the order in which they came.
 * @param waitMs milliseconds that a piece of work waits in line at most; without it, as long as it takes
 * @returns runs work under a key. It throws what `work` throws, or that its turn did not come in time
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
        reject(new Error('timeout exceeded while others of this account wait for the database'))
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
      // Hands the free turn to the next in line.
      const [next] = line.waiting
      if (next) {
        line.waiting.delete(next)
        next()
      } else if (--line.running === 0) lines.delete(key)
    }
  }
}
