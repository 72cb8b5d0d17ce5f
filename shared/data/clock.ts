/** PostgreSQL's clock. */
import { sql } from 'kysely'
import type { Queries } from './database.ts'
import { now } from './sql.ts'
import { only, statement } from './statement.ts'

const read = statement()('clock', () => sql<{ now: Date }>`select ${now} as now`)

export const readClock = async (db: Queries) => (await only(db.run(read))).now

/** The clock, which this process counts on by itself. It is behind the real one rather than ahead. */
export interface DatabaseClock {
  /** Milliseconds since 1970, when PostgreSQL was asked. */
  ms: number
  /** When the answer came, in `performance.now()`. */
  readAt: number
}

/** @returns milliseconds since 1970 */
export const readOf = ({ ms, readAt }: DatabaseClock): number => ms + performance.now() - readAt
