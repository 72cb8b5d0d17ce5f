import { setTimeout as sleep } from 'node:timers/promises'
import { attempt } from './notices.ts'
import type { Ui } from './ui.ts'

/** Time for the signal to take effect; the rest passes after `fg`. */
const stoppingMs = 50

export function suspendPicker(ui: Ui): void {
  attempt(ui, () =>
    ui.handOver(async () => {
      // Stops the whole job, as a terminal does.
      process.kill(0, 'SIGTSTP')
      await sleep(stoppingMs)
    }),
  )
}

/** Another process stopped us, and the shell has written on the screen. */
export const drawAgain = (ui: Ui): void => attempt(ui, () => ui.handOver(async () => {}))
