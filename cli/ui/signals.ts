/** Suspends the picker on Ctrl-Z. Ink restores the terminal when another signal ends the process. */
import { setTimeout as sleep } from 'node:timers/promises'
import { attempt } from './dialogs.ts'
import type { Ui } from './ui.ts'

/** Milliseconds to wait for SIGTSTP to suspend the process. */
const stoppingMs = 50

export function suspendPicker(ui: Ui): void {
  attempt(ui, () =>
    ui.handOver(async () => {
      // Suspends the whole job, as a terminal does.
      process.kill(0, 'SIGTSTP')
      await sleep(stoppingMs)
    }),
  )
}

/**
 * Installs the picker's signal handlers.
 * @returns a function that suspends the handlers while it runs another program
 */
export function takeSignals(ui: Ui) {
  // The client's handler would print an error. Ink adds its own handlers later.
  process.removeAllListeners('SIGINT')
  const stop = () => suspendPicker(ui)
  // If another process suspended the picker, the shell has written to the screen in the meantime.
  const drawAgain = () => attempt(ui, () => ui.handOver(async () => {}))
  const ignore = () => {}
  process.on('SIGTSTP', stop).on('SIGCONT', drawAgain)
  return async (use: () => Promise<void>): Promise<void> => {
    process.off('SIGTSTP', stop).off('SIGCONT', drawAgain).on('SIGINT', ignore)
    try {
      await use()
    } finally {
      process.on('SIGTSTP', stop).on('SIGCONT', drawAgain).off('SIGINT', ignore)
    }
  }
}
