import { setTimeout as sleep } from 'node:timers/promises'
import { attempt } from './notices.ts'
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
 * Redraws the screen after `fg` if another process suspended the picker. The shell has written to the screen
 * in the meantime.
 */
export const drawAgain = (ui: Ui): void => attempt(ui, () => ui.handOver(async () => {}))
