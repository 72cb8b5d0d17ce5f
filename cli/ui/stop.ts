/** Ctrl-Z: the host's shell has the terminal until `fg`. */
import { setTimeout as sleep } from 'node:timers/promises'
import { attempt } from './tell.ts'
import type { Ui } from './ui.ts'

/** Until the signal that we send to ourselves has stopped us; what is left of it passes after `fg`. */
const stoppingMs = 50

export function stopHere(ui: Ui): void {
  attempt(ui, () =>
    ui.handOver(async () => {
      // All of the job, as a terminal does it: whatever started us waits for us.
      process.kill(0, 'SIGTSTP')
      await sleep(stoppingMs)
    }),
  )
}

/** Somebody else stopped us, with the screen as it was: the shell has written on it. */
export const drawAgain = (ui: Ui): void => attempt(ui, () => ui.handOver(async () => {}))
