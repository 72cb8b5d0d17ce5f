/** Awaits work with a deadline. Work that cannot be cancelled continues after it. */
import { addAbortListener } from 'node:events'

/**
 * Waits for work for up to `ms` milliseconds. A negative time counts as 0.
 * @param late returns the result or throws after a timeout; without it, the result is undefined
 * @throws the error of the work
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
 * @throws the reason of the signal when it aborts; the later result of the work is ignored
 */
export async function untilAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  using _abort = addAbortListener(signal, () => reject(signal.reason))
  return await Promise.race([work, aborted])
}
