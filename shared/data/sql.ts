/** Pieces of SQL that several statements use. */
import { sql } from 'kysely'

/** The one clock. Read after a lock it is the time after the lock. */
export const now = sql<Date>`sandlot_now()`

/** PostgreSQL reads a volatile function for every row, and then cannot use an index. A subquery is read once. */
export const nowOnce = sql<Date>`(select sandlot_now())`

/** The UTC day of {@link nowOnce}, as a `date`. */
export const todayOnce = sql<string>`(${nowOnce} at time zone 'UTC')::date`
