/** Retries after a broken connection, or when the service asks to wait. */
import { setTimeout as sleep } from 'node:timers/promises'
import { CliError } from '../core/errors.ts'

/** Pauses before each further try. */
export const pausesMs = [100, 300, 1_000, 2_000, 4_000]

/**
 * How long to wait before try number `tries` + 1; undefined when there is to be none.
 * @param mayGoOn whether to try again after the last of the pauses, too
 */
export function pauseAfter(error: unknown, tries: number, mayGoOn = false): number | undefined {
  if (!(error instanceof CliError)) return undefined
  const seconds = Number(error.details.retry_after)
  if (error.code === 'rate_limited') return (Number.isFinite(seconds) ? seconds : 1) * 1_000
  const mayPass = error.code === 'network' || Number(error.details.status) >= 500
  return mayPass ? (pausesMs[tries] ?? (mayGoOn ? pausesMs.at(-1) : undefined)) : undefined
}

/**
 * For what may be repeated.
 * @param mostAwayMs how long to try at least
 * @throws {CliError} the last one
 */
export async function patiently<T>(attempt: () => Promise<T>, mostAwayMs = 0): Promise<T> {
  const beganAt = performance.now()
  for (let tries = 0; ; tries++) {
    try {
      return await attempt()
    } catch (error) {
      const pause = pauseAfter(error, tries, performance.now() - beganAt < mostAwayMs)
      if (pause === undefined) throw error
      await sleep(pause)
    }
  }
}
