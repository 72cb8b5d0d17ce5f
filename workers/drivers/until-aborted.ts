import { addAbortListener } from 'node:events'

/**
 * Waits for work that cannot be called off, no longer than until the signal aborts.
 * @throws the signal's reason; what the work comes to later is of no interest then
 */
export async function untilAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  using _abort = addAbortListener(signal, () => reject(signal.reason))
  return await Promise.race([work, aborted])
}
