import { sql } from 'kysely'
import type { Queries } from './database.ts'
import { now } from './sql.ts'
import { only } from './statement.ts'

const read = only()('clock', () => sql<{ now: Date }>`select ${now} as now`)

export const readClock = async (db: Queries) => (await read(db)).now

export interface DatabaseClock {
  /** Milliseconds since the Unix epoch. */
  ms: number
  /** Value of `performance.now()` when the query's result arrived. */
  readAt: number
}

/**
 * Returns PostgreSQL's current time in milliseconds, extrapolated from an earlier reading. It is never ahead
 * of PostgreSQL's clock.
 */
export const readOf = ({ ms, readAt }: DatabaseClock): number => ms + performance.now() - readAt
