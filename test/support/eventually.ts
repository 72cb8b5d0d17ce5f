import { setTimeout as sleep } from 'node:timers/promises'
import { defaultSeconds } from '../../shared/platform/liveness-timeouts.ts'
import { noteMeasured } from './measured.ts'

/**
 * How many times as long as documented a wait may take: 6 in the gate (vitest.config.ts), which says the same on a
 * busy machine as on a quiet one, and 1 in the soak, where the time itself is held against what is documented.
 */
const patience = Number(process.env.SANDLOT_PATIENCE ?? 1)
/** There measured times are held against documented ones, as nothing else runs, and a suite may take more rounds. */
export const isSoak = patience === 1
/** Settings of all processes and drivers of tests. In the gate, what lives on a busy machine is not taken for silent. */
export const patientEnv: Record<string, string> = isSoak ? {} : { WORKER_LIVENESS_TIMEOUT_SECONDS: '6' }
/** Of a process that is to find out that another one is gone, and of which nothing else is asked meanwhile. */
export const defaultLiveness = { WORKER_LIVENESS_TIMEOUT_SECONDS: String(defaultSeconds) }
/** The limit of a test is longer, so that a wait tells what it waited for. */
const longestMs = 150_000

/** @returns the milliseconds that the suite which runs now gives to what is documented to take `ms` */
export const patient = (ms: number): number => Math.max(ms, Math.min(ms * patience, longestMs))

/** @throws in the soak, when what was measured took as long as documented or longer */
export function expectWithin(ms: number, documentedMs: number): void {
  if (isSoak) noteMeasured(ms, documentedMs)
  if (isSoak && ms >= documentedMs) throw new Error(`${ms} ms, and documented are ${documentedMs} ms`)
}

/**
 * Waits for what is documented to come within a time, and asks every 20 ms whether it has.
 * @param ms the documented time; the suite's patience makes it longer
 * @returns what the question answered, once that is true
 * @throws when it is still not so at the end, with the last error or answer
 */
export const eventually = <T>(ask: () => Promise<T> | T, ms: number): Promise<NonNullable<T>> =>
  waitFor(ask, patient(ms))

/** The same, in the very time: for a wait that may well end without an answer. */
export async function waitFor<T>(ask: () => Promise<T> | T, ms: number): Promise<NonNullable<T>> {
  const end = performance.now() + ms
  for (;;) {
    const late = performance.now() > end
    try {
      const answer = await ask()
      if (answer) return answer
      if (late) throw new Error(`still not so after ${ms} ms: ${ask}`)
    } catch (error) {
      if (late) throw error
    }
    await sleep(20)
  }
}
