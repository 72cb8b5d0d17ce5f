import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Waits for what is documented to come within a time, and asks every 20 ms whether it has.
 * @returns what the question answered, once that is true
 * @throws when it is still not so after `ms`, with the last error or answer
 */
export async function eventually<T>(ask: () => Promise<T> | T, ms: number): Promise<NonNullable<T>> {
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
