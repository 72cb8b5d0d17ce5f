/** The table `installation`: one row, which a migration writes. */
import { sql } from 'kysely'
import type { Queries } from './database.ts'
import { first, hasRow, statement } from './statement.ts'

const only = statement()('installation', (db) => db.selectFrom('installation').select('id'))

/** The id with which pods are labelled. Returns undefined before the migrations ran. */
export const readInstallation = async (db: Queries) => (await first(db.run(only)))?.id

/** Not `sandlot_now()`: a sweep is due by the real time. */
const realNow = sql<Date>`clock_timestamp()`

const take = statement<{ seconds: number }>()('take the sweep', (db, { seconds }) =>
  db
    .updateTable('installation')
    .set({ swept_at: realNow })
    // After a clock went back, the row holds a time in the future. One second ahead is allowed, because the column rounds.
    .where(
      sql<boolean>`(swept_at between ${realNow} - ${seconds}::double precision * interval '1 second'
                                    and ${realNow} + interval '1 second') is not true`,
    )
    .returning('id'),
)

/**
 * Takes the next pass, for one of all workers.
 * @param seconds since the last pass was taken
 * @returns false when it was taken more recently
 */
export const claimReconcilePass = (db: Queries, seconds: number) => hasRow(db.run(take, { seconds }))
