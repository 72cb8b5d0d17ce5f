/** Ends the process early, after the registered cleanups. */

const duties = new Set<() => Promise<void>>()
let begun = false
/** Limit for cleanups that hang. */
const maxMs = 15_000

export const isShuttingDown = (): boolean => begun

/** Further calls do nothing. */
export async function leave(code: number): Promise<void> {
  if (begun) return
  begun = true
  if (duties.size === 0) process.exit(code)
  setTimeout(() => process.exit(code), maxMs)
  await Promise.allSettled([...duties].map((duty) => duty()))
  process.exit(code)
}

const onSignal = {
  SIGTERM: () => void leave(143),
  SIGHUP: () => void leave(129),
}

/**
 * Runs `duty` before the client exits on a signal or an output error.
 * @returns a function that unregisters it
 */
export function onShutdown(duty: () => Promise<void>): () => void {
  if (duties.size === 0) for (const [signal, handle] of Object.entries(onSignal)) process.on(signal, handle)
  duties.add(duty)
  return () => {
    duties.delete(duty)
    if (duties.size === 0)
      for (const [signal, handle] of Object.entries(onSignal)) process.off(signal, handle)
  }
}
