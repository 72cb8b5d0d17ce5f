import { setTimeout as sleep } from 'node:timers/promises'

export interface KeptProcess {
  /** Resolves when the process exits, with a description such as `exit code 1` or `SIGKILL`. */
  ended: Promise<string>
  stop(): Promise<void>
}

/** Thrown for invalid settings, which a restart would not fix. */
export class WrongSettings extends Error {}

export type Stoppable = Pick<KeptProcess, 'stop'>

/** Delay before the first restart. Each further exit doubles the delay. */
const initialDelayMs = 500
const maxDelayMs = 30_000
/** How long a process must run before its next restart uses the initial delay again. */
const healthyAfterMs = 30_000

/**
 * Restarts a process whenever it exits.
 * @param start resolves when the process is running. If the first start fails, its error is thrown; later
 * errors are only reported.
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
    let delay = initialDelayMs
    let startedAt = performance.now()
    while (!stopping.signal.aborted) {
      if (current !== undefined) {
        const how = await current.ended
        if (stopping.signal.aborted) return
        // The process has already printed the details.
        if (onWrongSettings && how === 'exit code 2')
          return onWrongSettings(
            new WrongSettings(`${name} reports invalid settings (exit code 2). Fix them and start again.`),
          )
        if (performance.now() - startedAt > healthyAfterMs) delay = initialDelayMs
        report(`${name} exited (${how}). Restarting it in ${delay / 1000} s.`)
      }
      await sleep(delay, undefined, { signal: stopping.signal }).catch(() => {})
      if (stopping.signal.aborted) return
      delay = Math.min(delay * 2, maxDelayMs)
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
