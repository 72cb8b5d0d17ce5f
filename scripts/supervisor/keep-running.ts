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
const wrongSettingsOf = (name: string) =>
  new WrongSettings(`${name} reports wrong settings (exit code 2). Fix them and start again.`)

export type Stoppable = Pick<KeptProcess, 'stop'>

/** Milliseconds. */
const initialDelay = 500
const maxDelay = 30_000
/** The exit code of an API or worker with wrong settings. A restart would fail again. */
const wrongSettingsExit = 'exit code 2'
/** A process that ran this long was healthy, so the backoff starts again. */
const healthyAfter = 30_000

/**
 * @param start resolves once it runs; its first error is thrown here, later ones are retried
 * @param report prints to the terminal
 * @param onWrongSettings called instead of a restart if the settings of the process are wrong
 */
export async function keepRunning(
  name: string,
  start: () => Promise<KeptProcess>,
  report: (line: string) => void,
  onWrongSettings?: (error: Error) => void,
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
    let delay = initialDelay
    let startedAt = performance.now()
    while (!stopping.signal.aborted) {
      if (current !== undefined) {
        const how = await current.ended
        if (stopping.signal.aborted) return
        if (onWrongSettings && how === wrongSettingsExit) return onWrongSettings(wrongSettingsOf(name))
        if (performance.now() - startedAt > healthyAfter) delay = initialDelay
        report(`${name} ended with ${how}. Restarting it in ${delay / 1000} s.`)
      }
      await sleep(delay, undefined, { signal: stopping.signal }).catch(() => {})
      if (stopping.signal.aborted) return
      delay = Math.min(delay * 2, maxDelay)
      startedAt = performance.now()
      current = await start().catch((error: Error) => {
        report(`${name} did not start: ${error.message}\nRetrying in ${delay / 1000} s.`)
        return undefined
      })
    }
    // stop() was called during the start.
    await current?.stop()
  }
}
