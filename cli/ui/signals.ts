/** Signals while the picker has the terminal: each ends it, with the terminal as it was. */
import { constants } from 'node:os'

const ending = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** @param restore restores the terminal, before the process ends */
export function takeSignals(restore: () => void) {
  const before = process.listeners('SIGINT')
  for (const listener of before) process.off('SIGINT', listener)
  const end = (signal: NodeJS.Signals) => {
    restore()
    process.exit(128 + constants.signals[signal])
  }
  const ignore = () => {}
  const take = () => {
    for (const signal of ending) process.on(signal, end)
  }
  const release = () => {
    for (const signal of ending) process.off(signal, end)
  }
  take()
  return {
    /** While another program has the terminal: Ctrl-C is its own. */
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
