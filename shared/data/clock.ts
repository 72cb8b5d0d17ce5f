/** PostgreSQL's clock. */
import { sql } from 'kysely'
import type { Queries } from './database.ts'
import { now } from './sql.ts'
import { only, statement } from './statement.ts'

const read = statement()('clock', () => sql<{ now: Date }>`select ${now} as now`)

export const readClock = async (db: Queries) => (await only(db.run(read))).now

/** PostgreSQL's clock, extrapolated by this process, and never ahead of it. */
export interface DatabaseClock {
  /** Milliseconds since 1970 when PostgreSQL read it. */
  ms: number
  /** When the answer arrived, by `performance.now()`. */
  readAt: number
}

/** @returns milliseconds since 1970 */
export const readOf = ({ ms, readAt }: DatabaseClock): number => ms + performance.now() - readAt
