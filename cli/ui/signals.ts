/** Restores the terminal before a signal ends the picker. */
import { constants } from 'node:os'

const ending = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

interface Screen {
  restore(): void
  /** Suspends the picker, like Ctrl-Z. */
  stop(): void
  /** Redraws the screen, because another program may have written to it. */
  drawAgain(): void
}

export function takeSignals({ restore, stop, drawAgain }: Screen) {
  const before = process.listeners('SIGINT')
  for (const listener of before) process.off('SIGINT', listener)
  const end = (signal: NodeJS.Signals) => {
    restore()
    process.exit(128 + constants.signals[signal])
  }
  const ignore = () => {}
  const take = () => {
    for (const signal of ending) process.on(signal, end)
    process.on('SIGTSTP', stop).on('SIGCONT', drawAgain)
  }
  const release = () => {
    for (const signal of ending) process.off(signal, end)
    process.off('SIGTSTP', stop).off('SIGCONT', drawAgain)
  }
  take()
  return {
    /** Runs another program without the picker's signal handlers, because that program handles Ctrl-C. */
    async leaveTo<T>(use: () => Promise<T>): Promise<T> {
      process.on('SIGINT', ignore)
      release()
      try {
        return await use()
      } finally {
        take()
        process.off('SIGINT', ignore)
      }
    },
    end() {
      release()
      for (const listener of before) process.on('SIGINT', listener)
    },
  }
}
