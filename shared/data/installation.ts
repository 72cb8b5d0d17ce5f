import { sql } from 'kysely'
import type { Queries } from './database.ts'
import { first, hasRow, statement } from './statement.ts'

const only = statement()('installation', (db) => db.selectFrom('installation').select('id'))

/** Returns the installation's ID, or undefined if migrations have not run yet. */
export const readInstallation = async (db: Queries) => (await first(db.run(only)))?.id

/**
 * The real time. Tests change the clock of `sandlot_now()`, which must not affect the reconciler's interval.
 */
const realNow = sql<Date>`clock_timestamp()`

const take = statement<{ seconds: number }>()('claim reconciler pass', (db, { seconds }) =>
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
 * Claims the next reconciler pass, so that only one worker runs it.
 * @param seconds minimum interval between passes
 * @returns false if a worker already started a pass within the interval
 */
export const claimReconcilePass = (db: Queries, seconds: number) => hasRow(db.run(take, { seconds }))
