/**
 * How long processes wait for a word of each other, of the cluster and of shells in pods. All of it follows from one
 * setting, because each time must be shorter than others: test/silence.test.ts holds their order.
 */

/** WORKER_SILENCE_SECONDS where nobody sets it. */
export const usualSeconds = 3

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
  /** Until the cluster answers a request, or opens a connection to a pod. */
  cluster: number
  /** Until it answers a worker that asks whether it is there. The worker announces nothing meanwhile. */
  ping: number
  /** Between two pings of a connection to a pod. Pinging more often would take a busy API server for a dead one. */
  keepAlive: number
  /** Until a shell in a pod answers. After that it never will: half-open connections swallow writes. */
  shell: number
  /** Until a command whose slot says nothing has another one opened beside it. */
  slot: number
  /** What a call may take longer than its caller says, because pods may be silent for longer than usually. */
  longer: number
}

/**
 * @param seconds WORKER_SILENCE_SECONDS
 * @returns whole milliseconds, as time-outs must be
 */
export function silenceOf(seconds: number): Silence {
  const share = (part: number) => Math.round(seconds * 1000 * part)
  return {
    handOver: share(1),
    answer: share(1),
    last: share(2 / 3),
    stale: share(2),
    missing: share(5 / 3),
    missingAnswer: share(2 / 3),
    cluster: share(5 / 3),
    ping: share(2 / 3),
    keepAlive: share(5 / 3),
    shell: share(5 / 3),
    slot: share(1),
    // Callers allow for 20 s of silence, which grow in proportion.
    longer: Math.max(0, Math.round((seconds / usualSeconds - 1) * 20_000)),
  }
}

/**
 * A worker that stood still for so long begins nothing that it was asked for before: its API may have told that it is lost.
 * @param answerMs how long that API waits
 */
export const stillMs = (answerMs: number): number => answerMs - 100
