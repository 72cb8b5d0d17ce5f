/**
 * The event loop's time for what is made of a sandbox's output. A worker has one loop for everybody, so such work is
 * done in slices of a few milliseconds, one a round of the loop, and accounts take turns: however much one of
 * them asks for, all else in the worker waits for one slice at most.
 */
import { performance } from 'node:perf_hooks'
import { append, type Turns, takeFirst } from '../../shared/platform/turns.ts'

/** A command of somebody else's takes some ten rounds of the loop, and each may wait for a slice. */
const sliceMs = 3

/** Work that can stand still at each `yield`; what lies between two of them takes far less than a slice. */
export type Steps<T> = Generator<undefined, T>

export interface Share {
  /** Does the work, in slices. What it throws is thrown. */
  run<T>(steps: Steps<T>): Promise<T>
}

/** The accounts that wait for a slice. */
const waiting: Turns<() => void> = new Map()
let isTaken = false

export const shareOf = (accountId: string): Share => ({
  async run(steps) {
    for (;;) {
      if (isTaken) await new Promise<void>((resolve) => append(waiting, accountId, resolve))
      else take()
      const until = performance.now() + sliceMs
      do {
        const { done, value } = steps.next()
        if (done) return value
      } while (performance.now() < until)
    }
  },
})

/** The next slice comes a round of the loop later, when all that is ready was seen to. */
function take(): void {
  isTaken = true
  setImmediate(() => {
    isTaken = false
    const go = takeFirst(waiting)
    if (!go) return
    take()
    go()
  })
}

/** Does the work at one go. */
export function finish<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}
