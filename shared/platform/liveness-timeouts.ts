/**
 * How long processes wait for a word of each other, of the cluster and of shells in pods. All of it follows from one
 * setting, because each time must be shorter than others: test/liveness-timeouts.test.ts holds their order.
 */

/** The default of WORKER_LIVENESS_TIMEOUT_SECONDS. */
export const usualSeconds = 3

/** Milliseconds. */
export interface LivenessTimeouts {
  /** Until a worker answers `100 Continue`. Only then is a call handed over to it. */
  handOver: number
  /** Until a worker with calls answers a liveness check. After that, its calls are lost. */
  answer: number
  /** The last part of `answer`. A worker whose calls carried bytes in it is only busy. */
  last: number
  /** The lease of a dead worker is older than this. One that has just died refuses connections. */
  stale: number
  /** A worker that is not registered for this long gets a liveness check. Emptying Redis removes all for a second. */
  missing: number
  /** Until it answers that check. */
  missingAnswer: number
  /** Until the cluster answers a request, or opens a connection to a pod. */
  cluster: number
  /** Until the cluster answers a worker's ping, which delays the worker's heartbeat. */
  ping: number
  /** Between two pings of a connection to a pod. More frequent pings would mistake a busy API server for a dead one. */
  keepAlive: number
  /** Until a shell in a pod answers. After that, the connection is half-open. */
  shell: number
  /** Until another slot is opened for a command whose slot does not answer. */
  slot: number
  /** Added to the timeout of a call, for pods that answer more slowly. */
  longer: number
}

/**
 * @param seconds WORKER_LIVENESS_TIMEOUT_SECONDS
 * @returns whole milliseconds, as time-outs must be
 */
export function livenessTimeoutsOf(seconds: number): LivenessTimeouts {
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
 * After an event-loop stall of this length, a worker starts nothing that was requested before: its API may have
 * reported it as lost.
 * @param answerMs how long that API waits
 */
export const stillMs = (answerMs: number): number => answerMs - 100
