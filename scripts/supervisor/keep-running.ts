import { setTimeout as sleep } from 'node:timers/promises'

export interface KeptProcess {
  /** Resolves when the process has exited, with a description such as `exit code 1` or `SIGKILL`. */
  ended: Promise<string>
  /** Stops the process and waits until it has exited. */
  stop(): Promise<void>
}

/** Invalid settings, which a restart would not fix. The message is printed to the terminal. */
export class WrongSettings extends Error {}

/** Creates the error for a process that exited because of invalid settings and has already printed the details. */
const wrongSettingsOf = (name: string) =>
  new WrongSettings(`${name} reports invalid settings (exit code 2). Fix them and start again.`)

export type Stoppable = Pick<KeptProcess, 'stop'>

/** Delay before the first restart, in milliseconds. The delay doubles after each further exit. */
const initialDelay = 500
/** Maximum delay before a restart, in milliseconds. */
const maxDelay = 30_000
/** Exit description of an API or worker with invalid settings, which a restart would not fix. */
const wrongSettingsExit = 'exit code 2'
/** Time that a process must run to count as healthy, in milliseconds. A healthy process resets the backoff. */
const healthyAfter = 30_000

/**
 * Starts a process, and restarts it whenever it exits.
 * @param start resolves when the process is running; an error from the first start is thrown, and later starts are
 *   retried
 * @param report prints to the terminal
 * @param onWrongSettings called instead of restarting a process that exited because of invalid settings
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
        report(`${name} exited (${how}). Restarting it in ${delay / 1000} s.`)
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
    // stop() was called while the process was starting.
    await current?.stop()
  }
}
