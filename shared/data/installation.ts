/** The table `installation`. Its only row is inserted by a migration. */
import { sql } from 'kysely'
import type { Queries } from './database.ts'
import { first, hasRow, statement } from './statement.ts'

const only = statement()('installation', (db) => db.selectFrom('installation').select('id'))

/** Returns the id in the labels of pods, or undefined before the migrations have run. */
export const readInstallation = async (db: Queries) => (await first(db.run(only)))?.id

/** Not `sandlot_now()`, because tests that move that clock must not affect the interval of the reconciler. */
const realNow = sql<Date>`clock_timestamp()`

const take = statement<{ seconds: number }>()('claim reconciler pass', (db, { seconds }) =>
  db
    .updateTable('installation')
    .set({ swept_at: realNow })
    // If the clock was set back, swept_at is in the future. One second is allowed, because the column is rounded.
    .where(
      sql<boolean>`(swept_at between ${realNow} - ${seconds}::double precision * interval '1 second'
                                    and ${realNow} + interval '1 second') is not true`,
    )
    .returning('id'),
)

/**
 * Claims the next reconciler pass among all workers.
 * @param seconds the interval
 * @returns false if another pass started within it
 */
export const claimReconcilePass = (db: Queries, seconds: number) => hasRow(db.run(take, { seconds }))
