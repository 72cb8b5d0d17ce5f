/** Plans the changes to the pool as a pure function of its rows and the time. */
import { type WarmPodRow as WarmPod, warmPodMs } from '../../shared/data/warm-pods.ts'

export const poolLimits = {
  /** Age in milliseconds at which a replacement is started, so that a pool of equally old pods never becomes empty. */
  agingMs: 55 * 60_000,
  /** Concurrent starts: a share of all pods, within limits. */
  starts: { share: 1 / 4, min: 2, max: 16 },
  /** Milliseconds that the refill waits while clients' pods start. Then one pod starts alongside them. */
  yieldMs: 10_000,
  /** Milliseconds without a start after a claim, to favor its first commands, unless half of the pool is used up. */
  restMs: 1_000,
  /** After these milliseconds without becoming ready, a start is resumed, because its worker may have died. */
  resumeAfterMs: 5_000,
}

export interface PoolTarget {
  size: number
  fingerprint: string
  /** The cluster has refused the image recently, so no pod is created for now. */
  isPaused: boolean
}

export interface Situation {
  rows: readonly WarmPod[]
  wanted: ReadonlyMap<string, PoolTarget>
  now: Date
  startSeconds: number
  /** How many pods may be starting now; see {@link allowedStarts}. */
  starts: number
  /** Milliseconds since a pod was claimed. */
  quietMs: number
}

export interface Plan {
  remove: WarmPod[]
  /** Started some time ago and still not ready. */
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
 * Returns how many pods of the pools may be starting. Clients have priority: none while a sandbox waits for its pod.
 * @param size of all pools together
 * @param waiting sandboxes whose pods are starting
 * @param yieldedMs milliseconds that the pools have already waited for them
 */
export function allowedStarts(size: number, waiting: number, yieldedMs: number): number {
  const { share, min, max } = poolLimits.starts
  if (waiting > 0) return yieldedMs >= poolLimits.yieldMs ? 1 : 0
  return Math.min(max, Math.max(min, Math.ceil(size * share)))
}
