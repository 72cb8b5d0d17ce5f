/**
 * How large a pool is to be between its low and its high mark: it holds what came in the busiest short
 * while of late. That while is about what a refill takes, so a rush like the last one finds a pod for
 * each create, and the pods of a rush that is over are kept for as long as it may come back.
 */
import { ulid } from 'ulid'
import type { Queries } from '../../shared/data/database.ts'
import type { PoolSize } from '../../shared/platform/settings-pools.ts'

export const demandLimits = {
  /** Creates that come within it are one rush. */
  rushMs: 10_000,
  /** How long a rush is remembered. */
  memoryMs: 15 * 60_000,
  /** Room above the busiest rush: the next one may be larger. */
  margin: 1.25,
}
const readEveryMs = 5_000

/** @param busiest creates in the busiest {@link demandLimits.rushMs} of the last {@link demandLimits.memoryMs} */
export function sizeFor({ min, max }: PoolSize, busiest: number): number {
  return Math.min(max, Math.max(min, Math.ceil(busiest * demandLimits.margin)))
}

export interface Demand {
  /** How many pods each image is to have now. */
  sizes(): Promise<Map<string, number>>
}

export function makeDemand(db: Queries, pools: ReadonlyMap<string, PoolSize>): Demand {
  const follows = [...pools.values()].some(({ min, max }) => min < max)
  let busiest = new Map<string, number>()
  let readAt = Number.NEGATIVE_INFINITY
  return {
    async sizes() {
      if (follows && performance.now() - readAt >= readEveryMs) {
        busiest = await readBusiest(db)
        readAt = performance.now()
      }
      return new Map([...pools].map(([image, size]) => [image, sizeFor(size, busiest.get(image) ?? 0)]))
    },
  }
}

/** Looks at no more rows than were made of late: ids begin with their time, by the clocks of the API processes. */
async function readBusiest(db: Queries): Promise<Map<string, number>> {
  const { rushMs, memoryMs } = demandLimits
  const slackMs = 60_000
  const oldest = `sbx_${ulid(Date.now() - memoryMs - slackMs)
    .slice(0, 10)
    .toLowerCase()}`
  const rows = await db.query<{ image: string; busiest: string }>(
    `select image, max(creates) as busiest
       from (select image, count(*) as creates
               from sandbox, (select sandlot_now() as now) as clock
              where id > ? and created_at > now - ? * interval '1 millisecond'
              group by image, floor(extract(epoch from created_at) * 1000 / ?)) as rush
      group by image`,
    [oldest, memoryMs, rushMs],
  )
  return new Map(rows.map(({ image, busiest }) => [image, Number(busiest)]))
}
