import { sql } from 'kysely'
import type { Queries } from './database.ts'
import { done, statement } from './statement.ts'

const one = statement()('ping', () => sql<{ one: number }>`select 1 as one`)

/** Checks the connection without using tables, so that it also works before the first migration. */
export const ping = (db: Queries) => done(db.run(one))
