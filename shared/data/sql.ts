/** Pieces of SQL that several statements use. */
import { expressionBuilder, type RawBuilder, sql } from 'kysely'
import type { Tables } from './entities/index.ts'

/** The one clock. It is read when the statement reaches it, for example after a lock. */
export const now = sql<Date>`sandlot_now()`

/** PostgreSQL reads a volatile function for every row, and then cannot use an index. A subquery is read once. */
export const nowOnce = sql<Date>`(select sandlot_now())`

/** The UTC day of {@link nowOnce}, as a `date`. */
export const todayOnce = sql<string>`(${nowOnce} at time zone 'UTC')::date`

const listed = expressionBuilder<Tables, 'api_key' | 'exec' | 'secret'>()

/** Of a list, newest first. */
export interface Page {
  /** The id that the previous page ended with; null for the first page. */
  before: string | null
  limit: number
}

export const isOlder = (before: Page['before']) =>
  listed.or([sql<boolean>`${before}::text is null`, listed('id', '<', before)])

/** Milliseconds that a row is billed within [since, until), including a warm pod that died unused before its own. */
export const billedMs = (since: RawBuilder<Date>, until: RawBuilder<Date>): RawBuilder<number> =>
  sql<number>`(billed_ms(ready_at, destroyed_at, expires_at, ${since}, ${until}) +
    billed_ms(first_ready_at, first_ended_at, expires_at, ${since}, ${until}))`
