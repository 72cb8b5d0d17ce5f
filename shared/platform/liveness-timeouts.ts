/**
 * Default of WORKER_LIVENESS_TIMEOUT_SECONDS. All liveness timeouts are derived from this setting in fixed
 * proportions, because some must be shorter than others.
 */
export const defaultSeconds = 3

/** All values are in milliseconds. */
export interface LivenessTimeouts {
  /** How long the API waits for `100 Continue` before it sends a call to another worker. */
  handOver: number
  /** How long a worker may take to answer a liveness check before its open calls count as lost. */
  answer: number
  /** Length of the final part of `answer`. A worker that transfers bytes in this part is busy, not lost. */
  last: number
  /**
   * Age at which a registry entry no longer counts as the entry of a live worker. Until then, only refused
   * connections reveal that the worker is dead.
   */
  stale: number
  /**
   * How long a worker must be missing from the registry before its liveness is checked. After Redis is
   * emptied, all workers are missing for about a second.
   */
  missing: number
  /** How long to wait for a worker that is missing from the registry to respond to its liveness check. */
  missingAnswer: number
  /** How long to wait for the cluster to respond to a request or to open a connection to a pod. */
  cluster: number
  /** How long a worker waits for the cluster to answer a ping. The heartbeat is sent only after this wait. */
  ping: number
  /**
   * Interval between pings to a pod, within which each ping must be answered. Pings pass through the
   * Kubernetes API server, so with a shorter interval, connections would break whenever that server is busy.
   */
  keepAlive: number
  /** How long to wait for a shell in a pod to respond. After that, its connection is considered half-open. */
  shell: number
  /** How long a command waits for a slot (a shell in the pod) to open before a second one is opened too. */
  slot: number
  /** Time added to the timeout of each call to a worker, because pods may respond slowly. */
  longer: number
}

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
    // With the default setting, callers allow 20 s. This time grows in proportion to the setting.
    longer: Math.max(0, Math.round((seconds / defaultSeconds - 1) * 20_000)),
  }
}

/**
 * Returns the longest stall, in milliseconds, after which a worker still runs commands requested before the
 * stall. After a longer stall, the API may already have reported these commands as lost.
 * @param answerMs liveness timeout of the API that sent the command
 */
export const stillMs = (answerMs: number): number => answerMs - 100
