/** Waits for work for a bounded time. Work that cannot be cancelled goes on by itself. */
import { addAbortListener } from 'node:events'

/**
 * Waits for work, `ms` milliseconds at most. What is left of a time may have run out meanwhile: less than 0 is none.
 * @param late returns or throws in place of work that takes longer; without it the result is undefined
 * @throws what the work throws within that time
 */
export async function within<T, L = undefined>(ms: number, work: Promise<T>, late?: () => L): Promise<T | L> {
  const { promise: over, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, Math.max(0, ms))
  try {
    return await Promise.race([work, over.then(late) as Promise<L>])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Waits for work until the signal aborts.
 * @throws the signal's reason once it aborts; the work's later result is ignored
 */
export async function untilAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  using _abort = addAbortListener(signal, () => reject(signal.reason))
  return await Promise.race([work, aborted])
}
