/** Restarts a process that exits, with a backoff. */
import { setTimeout as sleep } from 'node:timers/promises'

export interface KeptProcess {
  /** Resolves when it has ended, with a description. */
  ended: Promise<string>
  /** Stops it and waits until it has ended. */
  stop(): Promise<void>
}

/** Its message is for the terminal. */
export class WrongSettings extends Error {}

/** The process itself has printed the error. */
const wrongOf = (name: string) =>
  new WrongSettings(`${name} says that its settings are wrong (exit code 2). Fix them and start again.`)

export type Stoppable = Pick<KeptProcess, 'stop'>

/** Milliseconds. */
const firstDelay = 500
const longestDelay = 30_000
/** The exit code of an API or worker with wrong settings. A restart would fail again. */
const wrongSettings = 'exit code 2'
/** A process that ran this long was healthy, so the backoff starts again. */
const wellAfter = 30_000

/**
 * @param start resolves once it runs; its first error is thrown here, later ones are retried
 * @param say prints to the terminal
 * @param giveUp called instead of a restart when its settings are wrong
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
    // stop() was called during the start.
    await current?.stop()
  }
}
