/** Statements for the `command_refusal` table. Only this file writes to the table. */
import { sql } from 'kysely'
import { limits } from '../contract/limits.ts'
import type { Queries } from './database.ts'
import { todayOnce } from './sql.ts'
import { done, rows } from './statement.ts'

const count = done<{ accountId: string }>()('count refused command', (db, { accountId }) =>
  db
    .insertInto('command_refusal')
    .values({ account_id: accountId, day: todayOnce, count: 1 })
    .onConflict((conflict) =>
      conflict
        .columns(['account_id', 'day'])
        .doUpdateSet((row) => ({ count: row('command_refusal.count', '+', 1) })),
    ),
)

export const countRefusedCommand = (db: Queries, accountId: string) => count(db, { accountId })

const keptSince = sql<string>`${todayOnce} - ${sql.lit(limits.refusalDays)}`

const ofAccount = rows<{ accountId: string }>()('refused commands', (db, { accountId }) =>
  db
    .selectFrom('command_refusal')
    .select(['count', sql<string>`day::text`.as('day')])
    .where('account_id', '=', accountId)
    .where('day', '>', keptSince)
    .orderBy('command_refusal.day', 'desc'),
)

/** Returns how many commands were refused on each day, newest day first. Days have the format 2026-11-24. */
export const readRefusedCommands = (
  db: Queries,
  accountId: string,
): Promise<{ day: string; count: number }[]> => ofAccount(db, { accountId })

export const forgetRefusedCommands = done()('forget refused commands', (db) =>
  db.deleteFrom('command_refusal').where('day', '<=', keptSince),
)
