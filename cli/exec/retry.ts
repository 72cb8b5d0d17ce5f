/** Retries after a broken connection, or when the service asks to wait. */
import { setTimeout as sleep } from 'node:timers/promises'
import { CliError } from '../core/errors.ts'

/** Pauses before each further try. */
export const pausesMs = [100, 300, 1_000, 2_000, 4_000]

/** How long to wait before try number `tries` + 1; undefined when there is to be none. */
export function pauseAfter(error: unknown, tries: number): number | undefined {
  if (!(error instanceof CliError)) return undefined
  const seconds = Number(error.details.retry_after)
  if (error.code === 'rate_limited') return (Number.isFinite(seconds) ? seconds : 1) * 1_000
  const mayPass = error.code === 'network' || Number(error.details.status) >= 500
  return mayPass ? pausesMs[tries] : undefined
}

/** For what may be repeated. @throws {CliError} the last one */
export async function patiently<T>(attempt: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      return await attempt()
    } catch (error) {
      const pause = pauseAfter(error, tries)
      if (pause === undefined) throw error
      await sleep(pause)
    }
  }
}
