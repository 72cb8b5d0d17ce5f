import { setTimeout as sleep } from 'node:timers/promises'

export interface KeptProcess {
  /** Resolves with a description such as `exit code 1` or `SIGKILL`. */
  ended: Promise<string>
  stop(): Promise<void>
}

/** Invalid settings, which a restart would not fix. */
export class WrongSettings extends Error {}

/**
 * Error for a process that exited because of invalid settings. The process has already printed the details.
 */
const wrongSettingsOf = (name: string) =>
  new WrongSettings(`${name} reports invalid settings (exit code 2). Fix them and start again.`)

export type Stoppable = Pick<KeptProcess, 'stop'>

/** Milliseconds before the first restart. Each further exit doubles the delay. */
const initialDelay = 500
/** Maximum delay in milliseconds. */
const maxDelay = 30_000
/** Description of the exit of an API or worker process that has invalid settings. */
const wrongSettingsExit = 'exit code 2'
/** Running time in milliseconds after which the delay is reset. */
const healthyAfter = 30_000

/**
 * Restarts a process whenever it exits.
 * @param start resolves when the process is running. If the first start fails, its error is thrown; later
 *   errors are only reported
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
    // stop() was called during the start.
    await current?.stop()
  }
}
