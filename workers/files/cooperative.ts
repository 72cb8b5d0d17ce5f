/**
 * Divides long work into slices of a few milliseconds, because all accounts share one event loop. Each
 * event-loop iteration runs one slice, in round-robin order by account.
 */
import { performance } from 'node:perf_hooks'
import { append, type RoundRobinQueue, takeFirst } from '../../shared/lib/round-robin-queue.ts'

/**
 * Length of a slice. Longer slices would delay commands, because a command takes about ten event-loop
 * iterations and may have to wait for a slice in each of them.
 */
const sliceMs = 3

/** Work that can pause at each `yield`. The time between two yields must be much shorter than a slice. */
export type Steps<T> = Generator<undefined, T>

const waiting: RoundRobinQueue<() => void> = new Map()
let isScheduled = false

export async function runCooperatively<T>(accountId: string, steps: Steps<T>): Promise<T> {
  for (;;) {
    if (isScheduled) await new Promise<void>((resolve) => append(waiting, accountId, resolve))
    else schedule()
    const until = performance.now() + sliceMs
    do {
      const { done, value } = steps.next()
      if (done) return value
    } while (performance.now() < until)
  }
}

/** Runs the next slice in the next event-loop iteration, after pending I/O. */
function schedule(): void {
  isScheduled = true
  setImmediate(() => {
    isScheduled = false
    const resume = takeFirst(waiting)
    if (!resume) return
    schedule()
    resume()
  })
}
