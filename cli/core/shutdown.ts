const cleanups = new Set<() => Promise<void>>()
let isLeaving = false
/** Total time limit for all cleanups. */
const maxMs = 15_000

export const isShuttingDown = (): boolean => isLeaving

/** Runs the registered cleanups, then exits. */
export async function leave(code: number): Promise<void> {
  if (isLeaving) return
  isLeaving = true
  if (cleanups.size === 0) process.exit(code)
  setTimeout(() => process.exit(code), maxMs)
  await Promise.allSettled([...cleanups].map((cleanUp) => cleanUp()))
  process.exit(code)
}

const onSignal = {
  SIGTERM: () => void leave(143),
  SIGHUP: () => void leave(129),
}

/**
 * Registers a cleanup to run before a signal or an output error ends the client.
 * @returns a function that unregisters the cleanup
 */
export function onShutdown(cleanUp: () => Promise<void>): () => void {
  if (cleanups.size === 0) for (const [signal, handle] of Object.entries(onSignal)) process.on(signal, handle)
  cleanups.add(cleanUp)
  return () => {
    cleanups.delete(cleanUp)
    if (cleanups.size === 0)
      for (const [signal, handle] of Object.entries(onSignal)) process.off(signal, handle)
  }
}
