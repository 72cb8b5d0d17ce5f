/** What to do about the pool, as a pure function of its rows and the time. */
import { type WarmPodRow as WarmPod, warmPodMs } from '../../shared/data/warm-pods.ts'

export const poolLimits = {
  /** From this age on (milliseconds) another pod is started for it, so that the pool does not empty when all of it ages. */
  agingMs: 55 * 60_000,
  /** How many pods start at once: a share of all of them, within bounds. */
  starts: { share: 1 / 4, least: 2, most: 16 },
  /** Milliseconds that the refill waits for clients' pods. Then one pod starts beside them. */
  yieldMs: 10_000,
  /** Milliseconds after a claim without a start, for the commands that follow it, unless half of the pool is gone. */
  restMs: 1_000,
  /** A start that is older than this (milliseconds) may have lost the worker that began it. */
  newbornMs: 5_000,
}

export interface PoolTarget {
  size: number
  fingerprint: string
  /** Whether it was refused lately: no new pod is made for a while. */
  isPaused: boolean
}

export interface Situation {
  rows: readonly WarmPod[]
  wanted: ReadonlyMap<string, PoolTarget>
  now: Date
  startSeconds: number
  /** How many starts are allowed now, including those under way; see {@link allowedStarts}. */
  starts: number
  /** Milliseconds since a pod was claimed. */
  quietMs: number
}

export interface Plan {
  remove: WarmPod[]
  /** Begun some time ago and still not ready. */
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
    // An aging pod goes when another is ready in its place; of too many, the oldest go.
    const ready = fresh.filter((row) => row.ready_at)
    remove.push(...aging.slice(0, Math.max(0, aging.length + ready.length - size)))
    remove.push(...ready.slice(0, Math.max(0, ready.length - size)))
  }
  const isLate = (row: WarmPod) => ageOf(row, situation) > poolLimits.newbornMs
  return { remove, add, resume: starting.filter(isLate) }
}

const ageOf = (row: WarmPod, { now }: Situation) => now.getTime() - row.born_at.getTime()

function isGood(row: WarmPod, situation: Situation): boolean {
  const age = ageOf(row, situation)
  if (situation.wanted.get(row.image)?.fingerprint !== row.fingerprint) return false
  return row.ready_at ? age < warmPodMs : age < situation.startSeconds * 1000
}

/**
 * How many pods of the pools may be starting. Clients come first: while one waits for a pod, none is started.
 * @param size of all pools
 * @param waiting sandboxes that start
 * @param yieldedMs how long the pools have started nothing for their sake
 */
export function allowedStarts(size: number, waiting: number, yieldedMs: number): number {
  const { share, least, most } = poolLimits.starts
  if (waiting > 0) return yieldedMs >= poolLimits.yieldMs ? 1 : 0
  return Math.min(most, Math.max(least, Math.ceil(size * share)))
}
