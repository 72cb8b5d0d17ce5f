/** Waits for work for a bounded time. Work that cannot be cancelled goes on by itself. */
import { addAbortListener } from 'node:events'

/**
 * @param late what to return or throw when the work takes longer than `ms`; undefined unless given
 * @throws what the work throws within that time
 */
export async function within<T, L = undefined>(ms: number, work: Promise<T>, late?: () => L): Promise<T | L> {
  const { promise: over, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  try {
    return await Promise.race([work, over.then(late) as Promise<L>])
  } finally {
    clearTimeout(timer)
  }
}

/** @throws the signal's reason once it aborts; the work's later result is ignored */
export async function untilAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  using _abort = addAbortListener(signal, () => reject(signal.reason))
  return await Promise.race([work, aborted])
}
