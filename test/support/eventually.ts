import { setTimeout as sleep } from 'node:timers/promises'
import { defaultSeconds } from '../../shared/platform/liveness-timeouts.ts'
import { noteMeasured } from './measured.ts'

/** Factor for documented durations: 6 in the gate, so that load does not fail the gate, and 1 in the soak. */
const durationFactor = Number(process.env.SANDLOT_PATIENCE ?? 1)
/** Whether durations are checked. The soak runs tests in sequence, and some suites run more rounds. */
export const isSoak = durationFactor === 1
/** Settings for all test processes. The longer timeout in the gate tolerates delays on a busy machine. */
export const patientEnv: Record<string, string> = isSoak ? {} : { WORKER_LIVENESS_TIMEOUT_SECONDS: '6' }
/** Settings for processes that must detect the death of another process within the default timeout. */
export const defaultLiveness = { WORKER_LIVENESS_TIMEOUT_SECONDS: String(defaultSeconds) }
/** Maximum wait. It is shorter than the test timeout, so that a failed wait reports its condition. */
const longestMs = 150_000

/** Returns how long a documented duration may take in this run. */
export const patient = (ms: number): number => Math.max(ms, Math.min(ms * durationFactor, longestMs))

/** @throws in the soak if the measured duration is not below the documented one */
export function expectDurationBelow(ms: number, documentedMs: number): void {
  if (isSoak) noteMeasured(ms, documentedMs)
  if (isSoak && ms >= documentedMs)
    throw new Error(`took ${ms} ms, but the documented limit is ${documentedMs} ms`)
}

/**
 * Polls every 20 ms until `ask` returns a truthy value.
 * @param ms documented duration, which the gate extends
 * @throws the last error of `ask`
 */
export const eventually = <T>(ask: () => Promise<T> | T, ms: number): Promise<NonNullable<T>> =>
  waitFor(ask, patient(ms))

/** Like `eventually`, but never extends the duration. */
export async function waitFor<T>(ask: () => Promise<T> | T, ms: number): Promise<NonNullable<T>> {
  const end = performance.now() + ms
  for (;;) {
    const late = performance.now() > end
    try {
      const answer = await ask()
      if (answer) return answer
      if (late) throw new Error(`not true within ${ms} ms: ${ask}`)
    } catch (error) {
      if (late) throw error
    }
    await sleep(20)
  }
}
