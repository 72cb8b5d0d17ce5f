interface Queue {
  running: number
  waiting: Set<() => void>
}

/**
 * Limits how many callbacks with the same key run at a time. Further callbacks wait in order of arrival.
 * @returns a function that throws if the wait exceeds `waitMs`
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
        reject(new Error('timeout exceeded while waiting for other work with the same key'))
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
      // Starts the next callback immediately, so that a new one cannot overtake it.
      const [next] = queue.waiting
      if (next) {
        queue.waiting.delete(next)
        next()
      } else if (--queue.running === 0) queues.delete(key)
    }
  }
}
