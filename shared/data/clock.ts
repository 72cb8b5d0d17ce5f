import { sql } from 'kysely'
import type { Queries } from './database.ts'
import { now } from './sql.ts'
import { only, statement } from './statement.ts'

const read = statement()('clock', () => sql<{ now: Date }>`select ${now} as now`)

export const readClock = async (db: Queries) => (await only(db.run(read))).now

/** A reading of PostgreSQL's clock. The time extrapolated from the reading is never ahead of PostgreSQL. */
export interface DatabaseClock {
  /** Milliseconds since the Unix epoch. */
  ms: number
  /** Value of `performance.now()` when the query's result arrived. */
  readAt: number
}

export const readOf = ({ ms, readAt }: DatabaseClock): number => ms + performance.now() - readAt
