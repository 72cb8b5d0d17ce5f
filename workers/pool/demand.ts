/**
 * How large a pool is between its low and its high mark: it holds what came in the busiest short while of late. That
 * while is about as long as a refill takes, so a rush like the last one finds a pod for each create; and pods are kept
 * for as long as the rush may come back. Counted over the ids of that time. `bench/pool-simulation.ts` compares sizes:
 * in its day of 3,355 creates, `1..16` serves all of them for 79 pod-hours, a fixed 4 takes 96, and a fixed 1 serves
 * 91% for 24.
 */

import { ulid } from 'ulid'
import type { Queries } from '../../shared/data/database.ts'
import { findBusiest } from '../../shared/data/sandbox-pods.ts'
import type { PoolSize } from '../../shared/platform/settings-pools.ts'

export const demandLimits = {
  /** Milliseconds: creates within this time are one rush. */
  rushMs: 10_000,
  /** Milliseconds that a rush is remembered. */
  memoryMs: 15 * 60_000,
  /** Room above the busiest rush: the next one may be larger. */
  margin: 1.25,
}
const readEveryMs = 5_000

/** @param busiest creates in the busiest {@link demandLimits.rushMs} of the last {@link demandLimits.memoryMs} */
export function sizeFor({ min, max }: PoolSize, busiest: number): number {
  return Math.min(max, Math.max(min, Math.ceil(busiest * demandLimits.margin)))
}

/** @returns what tells how many pods each image is to have now */
export function makeDemand(db: Queries, pools: ReadonlyMap<string, PoolSize>) {
  const follows = [...pools.values()].some(({ min, max }) => min < max)
  let busiest = new Map<string, number>()
  let readAt = Number.NEGATIVE_INFINITY
  return async (): Promise<Map<string, number>> => {
    if (follows && performance.now() - readAt >= readEveryMs) {
      busiest = await readBusiest(db)
      readAt = performance.now()
    }
    return new Map([...pools].map(([image, size]) => [image, sizeFor(size, busiest.get(image) ?? 0)]))
  }
}

/** Reads only rows that were made lately: ids begin with their time, by the clocks of the API processes. */
async function readBusiest(db: Queries): Promise<Map<string, number>> {
  const { rushMs, memoryMs } = demandLimits
  const slackMs = 60_000
  const oldest = `sbx_${ulid(Date.now() - memoryMs - slackMs)
    .slice(0, 10)
    .toLowerCase()}`
  return await findBusiest(db, { oldest, memoryMs, rushMs })
}
