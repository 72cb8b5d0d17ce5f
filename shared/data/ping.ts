import { sql } from 'kysely'
import type { Queries } from './database.ts'
import { statement } from './statement.ts'

const one = statement()('ping', () => sql<{ one: number }>`select 1 as one`)

/** Resolves when PostgreSQL answers, also before its first migration. */
export async function ping(db: Queries): Promise<void> {
  await db.run(one)
}
