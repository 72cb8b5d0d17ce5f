/** Sudden ends, such as a signal or an output that fails: registered duties are done before the process exits. */

const duties = new Set<() => Promise<void>>()
let begun = false
/** A duty that hangs must not keep the process for ever. */
const mostMs = 15_000

export const isLeaving = (): boolean => begun

/** Ends the client when all duties are done. A second call changes nothing. */
export async function leave(code: number): Promise<void> {
  if (begun) return
  begun = true
  if (duties.size === 0) process.exit(code)
  setTimeout(() => process.exit(code), mostMs)
  await Promise.allSettled([...duties].map((duty) => duty()))
  process.exit(code)
}

const onSignal = {
  SIGTERM: () => void leave(143),
  SIGHUP: () => void leave(129),
}

/**
 * Makes sure that `duty` is done before the client ends, unless it is killed.
 * @returns what lifts it, once it is done
 */
export function beforeLeaving(duty: () => Promise<void>): () => void {
  if (duties.size === 0) for (const [signal, handle] of Object.entries(onSignal)) process.on(signal, handle)
  duties.add(duty)
  return () => {
    duties.delete(duty)
    if (duties.size === 0)
      for (const [signal, handle] of Object.entries(onSignal)) process.off(signal, handle)
  }
}
