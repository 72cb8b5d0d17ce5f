/** Concurrency limits by key. */

interface Queue {
  running: number
  waiting: Set<() => void>
}

/**
 * Limits how many calls with the same key run concurrently. The others wait in order of arrival.
 * @param waitMs milliseconds that a call may wait; by default no limit
 * @returns a function that runs work with a key, and throws if the wait takes too long
 */
export function limitByKey(maxRunning = 1, waitMs?: number) {
  const queues = new Map<string, Queue>()
  const wait = ({ waiting }: Queue) =>
    new Promise<void>((resolve, reject) => {
      const begin = () => {
        clearTimeout(timer)
        resolve()
      }
      const expire = () => {
        waiting.delete(begin)
        reject(new Error('timeout exceeded while other work of the same key runs'))
      }
      const timer = waitMs === undefined ? undefined : setTimeout(expire, waitMs)
      waiting.add(begin)
    })
  return async <T>(key: string, work: () => Promise<T>): Promise<T> => {
    const queue = queues.get(key) ?? { running: 0, waiting: new Set() }
    queues.set(key, queue)
    if (queue.running < maxRunning) queue.running++
    else await wait(queue)
    try {
      return await work()
    } finally {
      // Starts the next one immediately, so that a new call cannot overtake it.
      const [next] = queue.waiting
      if (next) {
        queue.waiting.delete(next)
        next()
      } else if (--queue.running === 0) queues.delete(key)
    }
  }
}
