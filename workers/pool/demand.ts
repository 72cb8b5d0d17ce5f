/**
 * Sizes each image's warm pool by demand, that is, by the number of sandboxes created from the image in the
 * busiest 10 seconds of the last 15 minutes.
 *
 * `bench/pool-simulation.ts` compares pool sizes on a simulated day with 3,355 new sandboxes. A pool of size
 * `1..16` serves all of them with 79 pod-hours, whereas a pool with a fixed size of 4 needs 96 pod-hours.
 */
import { encodeTime } from 'ulid'
import type { Queries } from '../../shared/data/database.ts'
import { findBusiest } from '../../shared/data/sandbox-pods.ts'
import type { PoolSize } from '../../shared/platform/settings-pools.ts'

export const demandLimits = {
  burstMs: 10_000,
  memoryMs: 15 * 60_000,
  margin: 1.25,
}
const readIntervalMs = 5_000

export function sizeFor({ min, max }: PoolSize, busiest: number): number {
  return Math.min(max, Math.max(min, Math.ceil(busiest * demandLimits.margin)))
}

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

/** Returns the demand for each image. IDs begin with a timestamp, so recent rows are found by ID. */
async function readBusiest(db: Queries): Promise<Map<string, number>> {
  const { burstMs, memoryMs } = demandLimits
  const maxClockSkewMs = 60_000
  const oldest = encodeTime(Date.now() - memoryMs - maxClockSkewMs).toLowerCase()
  return await findBusiest(db, { oldest: `sbx_${oldest}`, memoryMs, rushMs: burstMs })
}
