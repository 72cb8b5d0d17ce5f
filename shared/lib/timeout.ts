import { addAbortListener } from 'node:events'

/**
 * Waits up to `ms` milliseconds for `work`, which is not canceled after a timeout.
 * @param late called after a timeout to return a result or throw; if omitted, a timeout returns undefined
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
 * Waits for `work` until the signal is aborted. An abort does not cancel `work`.
 * @throws the signal's abort reason, or the error with which `work` rejects
 */
export async function untilAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  using _abort = addAbortListener(signal, () => reject(signal.reason))
  return await Promise.race([work, aborted])
}
