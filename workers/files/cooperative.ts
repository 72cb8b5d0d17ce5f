/**
 * Cooperative work on a sandbox's output. All accounts share one event loop, so such work is done in slices of a few
 * milliseconds, one in each round of the loop, round-robin by account. Everything else in the worker waits for one
 * slice at most.
 */
import { performance } from 'node:perf_hooks'
import { append, type RoundRobinQueue, takeFirst } from '../../shared/lib/round-robin-queue.ts'

/** Milliseconds. Another account's command takes some ten rounds of the loop, and each may wait for a slice. */
const sliceMs = 3

/** Work that can pause at each `yield`. From one `yield` to the next it takes far less than a slice. */
export type Steps<T> = Generator<undefined, T>

const waiting: RoundRobinQueue<() => void> = new Map()
let isTaken = false

export async function runCooperatively<T>(accountId: string, steps: Steps<T>): Promise<T> {
  for (;;) {
    if (isTaken) await new Promise<void>((resolve) => append(waiting, accountId, resolve))
    else take()
    const until = performance.now() + sliceMs
    do {
      const { done, value } = steps.next()
      if (done) return value
    } while (performance.now() < until)
  }
}

/** The next slice runs in the next round of the loop, after everything that is ready. */
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
