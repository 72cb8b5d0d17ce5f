/** SQL fragments that several statements share. */
import { expressionBuilder, type RawBuilder, sql } from 'kysely'
import type { Tables } from './entities/index.ts'

/** The clock of the system. It is evaluated during the statement, for example after waiting for a lock. */
export const now = sql<Date>`sandlot_now()`

/** PostgreSQL evaluates a volatile function for every row and cannot use an index for it, but a subquery only once. */
export const nowOnce = sql<Date>`(select sandlot_now())`

/** The UTC day of {@link nowOnce}, as a `date`. */
export const todayOnce = sql<string>`(${nowOnce} at time zone 'UTC')::date`

const listed = expressionBuilder<Tables, 'api_key' | 'exec' | 'secret'>()

/** A page of a list, newest first. */
export interface Page {
  /** The id that the previous page ended with; null for the first page. */
  before: string | null
  limit: number
}

export const isOlder = (before: Page['before']) =>
  listed.or([sql<boolean>`${before}::text is null`, listed('id', '<', before)])

/** Billed milliseconds of a row within [since, until), including those in a replaced warm pod. */
export const billedMs = (since: RawBuilder<Date>, until: RawBuilder<Date>): RawBuilder<number> =>
  sql<number>`(billed_ms(ready_at, destroyed_at, expires_at, ${since}, ${until}) +
    billed_ms(first_ready_at, first_ended_at, expires_at, ${since}, ${until}))`
