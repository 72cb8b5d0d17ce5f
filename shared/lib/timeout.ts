/** Awaits work with a deadline. Work that cannot be cancelled continues after it. */
import { addAbortListener } from 'node:events'

/**
 * Waits for work, at most `ms` milliseconds. A negative time counts as 0.
 * @param late returns or throws in place of work that takes longer; without it the result is undefined
 * @throws what the work throws within that time
 */
export async function withTimeout<T, L = undefined>(
  ms: number,
  work: Promise<T>,
  late?: () => L,
): Promise<T | L> {
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
