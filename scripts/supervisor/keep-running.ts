/** Starts a process again when it ends by itself, later each time it does so soon. */
import { setTimeout as sleep } from 'node:timers/promises'

export interface KeptProcess {
  /** Resolves when it has ended, in words. */
  ended: Promise<string>
  /** Ends it and waits until it is gone. */
  stop(): Promise<void>
}

/** In words for the terminal. */
export class WrongSettings extends Error {}

/** The process itself has printed what is wrong. */
const wrongOf = (name: string) =>
  new WrongSettings(`${name} says that its settings are wrong (exit code 2). Mend them and start again.`)

export type Stoppable = Pick<KeptProcess, 'stop'>

/** Milliseconds. */
const firstDelay = 500
const longestDelay = 30_000
/** An API or worker that ends so says that its settings are wrong: the next one would meet the same. */
const wrongSettings = 'exit code 2'
/** A process that ran this long was healthy: its next end counts as the first. */
const wellAfter = 30_000

/**
 * @param start resolves once it runs; what it throws the first time is thrown here, later it is tried again
 * @param say tells the terminal what happened
 * @param giveUp called when its settings are wrong, in place of another start; whoever gives none has no settings
 */
export async function keepRunning(
  name: string,
  start: () => Promise<KeptProcess>,
  say: (line: string) => void,
  giveUp?: (error: Error) => void,
): Promise<Stoppable> {
  const stopping = new AbortController()
  let current: KeptProcess | undefined = await start()
  const done = restart()

  return {
    async stop() {
      stopping.abort()
      await current?.stop()
      await done
    },
  }

  async function restart() {
    let delay = firstDelay
    let startedAt = performance.now()
    while (!stopping.signal.aborted) {
      if (current !== undefined) {
        const how = await current.ended
        if (stopping.signal.aborted) return
        if (giveUp && how === wrongSettings) return giveUp(wrongOf(name))
        if (performance.now() - startedAt > wellAfter) delay = firstDelay
        say(`${name} ended with ${how}; starting it again in ${delay / 1000} s.`)
      }
      await sleep(delay, undefined, { signal: stopping.signal }).catch(() => {})
      if (stopping.signal.aborted) return
      delay = Math.min(delay * 2, longestDelay)
      startedAt = performance.now()
      current = await start().catch((error: Error) => {
        say(`${name} did not start: ${error.message}\nTrying again in ${delay / 1000} s.`)
        return undefined
      })
    }
    // The stop came while it was starting.
    await current?.stop()
  }
}
