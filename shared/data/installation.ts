import { sql } from 'kysely'
import type { Queries } from './database.ts'
import { done, first, hasRow } from './statement.ts'

const only = first()('installation', (db) => db.selectFrom('installation').select('id'))

/** Returns the ID of the installation, or undefined before the first migration. */
export const readInstallation = async (db: Queries) => (await only(db))?.id

/**
 * PostgreSQL's real time. Tests change the clock of `sandlot_now()`, which must not affect the reconciler's
 * interval.
 */
const realNow = sql<Date>`clock_timestamp()`

const take = hasRow<{ seconds: number }>()('claim reconciler pass', (db, { seconds }) =>
  db
    .updateTable('installation')
    .set({ swept_at: realNow })
    // If the clock was set back, swept_at is in the future. One second is allowed, because the column is
    // rounded.
    .where(
      sql<boolean>`(swept_at between ${realNow} - ${seconds}::double precision * interval '1 second'
                                    and ${realNow} + interval '1 second') is not true`,
    )
    .returning('id'),
)

/**
 * Claims the next pass of the reconciler. Returns false if a worker started a pass within the last `seconds`,
 * so that only one worker runs it.
 */
export const claimReconcilePass = (db: Queries, seconds: number) => take(db, { seconds })

/** Checks the connection without using tables, so that it also works before the first migration. */
export const ping = done()('ping', () => sql<{ one: number }>`select 1 as one`)
