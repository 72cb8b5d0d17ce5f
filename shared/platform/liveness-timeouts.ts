/**
 * Liveness timeouts between processes, for the cluster and for shells in pods. All are derived from one setting,
 * because some must be shorter than others: test/liveness-timeouts.test.ts checks their order.
 */

/** The default of WORKER_LIVENESS_TIMEOUT_SECONDS. */
export const defaultSeconds = 3

/** Milliseconds. */
export interface LivenessTimeouts {
  /** Until a worker answers `100 Continue`. The call is handed over only then. */
  handOver: number
  /** Until a worker with open calls answers a liveness check. After that, the calls are lost. */
  answer: number
  /** The last part of `answer`. A worker is only busy if one of its calls transferred bytes in that time. */
  last: number
  /** The age at which a worker's lease expires. A worker that has just died refuses connections. */
  stale: number
  /** How long a worker is unregistered before a liveness check. Emptying Redis unregisters all for a second. */
  missing: number
  /** Until it answers that liveness check. */
  missingAnswer: number
  /** Until the cluster answers a request or opens a connection to a pod. */
  cluster: number
  /** Until the cluster answers a worker's ping, which delays the worker's heartbeat. */
  ping: number
  /** The interval between pings on a connection to a pod. If it were shorter, a busy API server would look dead. */
  keepAlive: number
  /** Until a shell in a pod answers. After that, the connection counts as half-open. */
  shell: number
  /** Until another slot is opened for a command whose slot does not answer. */
  slot: number
  /** Added to the timeout of a call, for pods that answer slowly. */
  longer: number
}

/**
 * @param seconds WORKER_LIVENESS_TIMEOUT_SECONDS
 * @returns whole milliseconds, as timers require
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
    // Callers already allow 20 s, which grow in proportion.
    longer: Math.max(0, Math.round((seconds / defaultSeconds - 1) * 20_000)),
  }
}

/**
 * The length of an event-loop stall after which a worker starts no command that was requested earlier, because the API
 * may have reported it as lost.
 * @param answerMs the liveness timeout of that API
 */
export const stillMs = (answerMs: number): number => answerMs - 100
