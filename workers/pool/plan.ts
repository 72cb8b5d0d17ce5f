import { type WarmPodRow as WarmPod, warmPodMs } from '../../shared/data/warm-pods.ts'

export const poolLimits = {
  /**
   * Age at which a warm pod's replacement is started. Pods of the same age would otherwise all expire at once
   * and leave the pool empty.
   */
  agingMs: 55 * 60_000,
  /** Maximum number of pods starting at the same time: a share of all warm pods, between `min` and `max`. */
  starts: { share: 1 / 4, min: 2, max: 16 },
  /** While sandboxes wait for pods, no warm pods are started for this long, and then only one at a time. */
  yieldMs: 10_000,
  /**
   * Time after a claim during which no pod is started, so that the claimed sandbox's first commands run fast.
   * Does not apply if more than half of the pool has been used.
   */
  restMs: 1_000,
  /** Age at which the start of an unready pod is resumed, because its worker might have died. */
  resumeAfterMs: 5_000,
}

export interface PoolTarget {
  size: number
  fingerprint: string
  /** Whether the cluster has recently refused the image. */
  isPaused: boolean
}

export interface Situation {
  rows: readonly WarmPod[]
  wanted: ReadonlyMap<string, PoolTarget>
  now: Date
  startSeconds: number
  starts: number
  quietMs: number
}

export interface Plan {
  remove: WarmPod[]
  resume: WarmPod[]
  add: string[]
}

export function plan(situation: Situation): Plan {
  const { rows, wanted } = situation
  const good = rows.filter((row) => isGood(row, situation))
  const add: string[] = []
  const remove = rows.filter((row) => !isGood(row, situation))
  const starting = good.filter((row) => !row.ready_at)
  let starts = situation.starts - starting.length
  for (const [image, { size, isPaused }] of wanted) {
    const pods = good.filter((row) => row.image === image)
    const isFresh = (row: WarmPod) => ageOf(row, situation) < poolLimits.agingMs
    const fresh = pods.filter(isFresh)
    const aging = pods.filter((row) => !isFresh(row))
    const missing = isPaused ? 0 : Math.max(0, size - fresh.length)
    const rests = situation.quietMs < poolLimits.restMs && fresh.length >= size / 2
    const begun = rests ? 0 : Math.max(0, Math.min(missing, starts))
    starts -= begun
    for (let count = 0; count < begun; count++) add.push(image)
    // An aging pod is removed once its replacement is ready. Surplus pods are removed oldest first.
    const ready = fresh.filter((row) => row.ready_at)
    remove.push(...aging.slice(0, Math.max(0, aging.length + ready.length - size)))
    remove.push(...ready.slice(0, Math.max(0, ready.length - size)))
  }
  const isLate = (row: WarmPod) => ageOf(row, situation) > poolLimits.resumeAfterMs
  return { remove, add, resume: starting.filter(isLate) }
}

const ageOf = (row: WarmPod, { now }: Situation) => now.getTime() - row.born_at.getTime()

function isGood(row: WarmPod, situation: Situation): boolean {
  const age = ageOf(row, situation)
  if (situation.wanted.get(row.image)?.fingerprint !== row.fingerprint) return false
  return row.ready_at ? age < warmPodMs : age < situation.startSeconds * 1000
}

/**
 * Returns how many warm pods may be starting at the same time: usually none while a sandbox waits for its
 * pod.
 * @param size total size of all pools
 * @param waiting number of sandboxes whose pods are starting
 * @param yieldedMs how long the pools have already waited for these sandboxes
 */
export function allowedStarts(size: number, waiting: number, yieldedMs: number): number {
  const { share, min, max } = poolLimits.starts
  if (waiting > 0) return yieldedMs >= poolLimits.yieldMs ? 1 : 0
  return Math.min(max, Math.max(min, Math.ceil(size * share)))
}
