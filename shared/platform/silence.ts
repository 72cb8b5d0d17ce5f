/**
 * How long processes wait for a word of each other. All of it follows from one setting, because each time must be shorter
 * than others: test/silence.test.ts holds their order.
 */

/** Milliseconds. */
export interface Silence {
  /** Until a worker says that it is there. Only then a call is handed over to it. */
  handOver: number
  /** Until a worker that has calls answers whether it lives. Its calls are lost after that. */
  answer: number
  /** The last part of `answer`: a worker whose calls carried bytes in it lives, and is only busy. */
  last: number
  /** The list's entry of a worker that died is older than this. One that died a moment ago refuses connections. */
  stale: number
  /** A worker that is not listed for this long is asked whether it lives. After Redis was emptied none is for a second. */
  missing: number
  /** Until it answers that. */
  missingAnswer: number
}

/** @param seconds WORKER_SILENCE_SECONDS */
export function silenceOf(seconds: number): Silence {
  const ms = seconds * 1000
  return {
    handOver: ms,
    answer: ms,
    last: (ms * 2) / 3,
    stale: ms * 2,
    missing: (ms * 5) / 3,
    missingAnswer: (ms * 2) / 3,
  }
}

/**
 * A worker that stood still for so long begins nothing that it was asked for before: its API may have told that it is lost.
 * @param answerMs how long that API waits
 */
export const stillMs = (answerMs: number): number => answerMs - 100
