/** Lets a few pieces of the work under each key run at once. The others wait in line, for a bounded time. */
export class Turns {
  private readonly lines = new Map<string, Line>()
  private readonly atOnce: number
  private readonly waitMs: number

  /** @param waitMs milliseconds that a piece of work waits in line at most */
  constructor(atOnce: number, waitMs: number) {
    this.atOnce = atOnce
    this.waitMs = waitMs
  }

  /** @throws what `work` throws, or that its turn did not come in time */
  async take<T>(key: string, work: () => Promise<T>): Promise<T> {
    const line = this.lines.get(key) ?? { running: 0, waiting: new Set() }
    this.lines.set(key, line)
    if (line.running < this.atOnce) line.running++
    else await this.turn(line)
    try {
      return await work()
    } finally {
      this.passOn(key, line)
    }
  }

  private turn({ waiting }: Line): Promise<void> {
    return new Promise((resolve, reject) => {
      const begin = () => {
        clearTimeout(timer)
        resolve()
      }
      const timer = setTimeout(() => {
        waiting.delete(begin)
        reject(new Error('timeout exceeded while others of this account wait for the database'))
      }, this.waitMs)
      waiting.add(begin)
    })
  }

  private passOn(key: string, line: Line): void {
    const [next] = line.waiting
    if (next) {
      line.waiting.delete(next)
      next()
    } else if (--line.running === 0) this.lines.delete(key)
  }
}

interface Line {
  running: number
  waiting: Set<() => void>
}
