/**
 * Sizes a pool between its minimum and its maximum by recent demand: the number of creates in the busiest 10 seconds of
 * the last 15 minutes. A refill takes about 10 seconds, so a burst like the last one finds a pod for each create.
 * `bench/pool-simulation.ts` compares sizes. In its day of 3,355 creates, `1..16` serves all of them for 79 pod-hours,
 * a fixed 4 takes 96, and a fixed 1 serves 91% for 24.
 */

import { ulid } from 'ulid'
import type { Queries } from '../../shared/data/database.ts'
import { findBusiest } from '../../shared/data/sandbox-pods.ts'
import type { PoolSize } from '../../shared/platform/settings-pools.ts'

export const demandLimits = {
  /** Length of a burst in milliseconds. */
  burstMs: 10_000,
  /** Milliseconds that a burst is remembered. */
  memoryMs: 15 * 60_000,
  /** The pool exceeds the largest burst by this factor, because the next one may be larger. */
  margin: 1.25,
}
const readIntervalMs = 5_000

/** @param busiest creates in the busiest {@link demandLimits.burstMs} of the last {@link demandLimits.memoryMs} */
export function sizeFor({ min, max }: PoolSize, busiest: number): number {
  return Math.min(max, Math.max(min, Math.ceil(busiest * demandLimits.margin)))
}

/** Returns a function that returns the current target size for each image. */
export function makeDemand(db: Queries, pools: ReadonlyMap<string, PoolSize>) {
  const isDynamic = [...pools.values()].some(({ min, max }) => min < max)
  let busiest = new Map<string, number>()
  let readAt = Number.NEGATIVE_INFINITY
  return async (): Promise<Map<string, number>> => {
    if (isDynamic && performance.now() - readAt >= readIntervalMs) {
      busiest = await readBusiest(db)
      readAt = performance.now()
    }
    return new Map([...pools].map(([image, size]) => [image, sizeFor(size, busiest.get(image) ?? 0)]))
  }
}

/** Reads only recent rows, by their ids, which begin with a time from the clock of an API process. */
async function readBusiest(db: Queries): Promise<Map<string, number>> {
  const { burstMs, memoryMs } = demandLimits
  const maxClockSkewMs = 60_000
  const oldest = `sbx_${ulid(Date.now() - memoryMs - maxClockSkewMs)
    .slice(0, 10)
    .toLowerCase()}`
  return await findBusiest(db, { oldest, memoryMs, rushMs: burstMs })
}
