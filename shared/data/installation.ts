/** The table `installation`: one row, which a migration writes. */
import type { Queries } from './database.ts'
import { statement } from './statement.ts'

const only = statement()('installation', (db) => db.selectFrom('installation').select('id'))

/** What this installation's pods are labelled with. @returns undefined before the migrations ran */
export async function readInstallation(db: Queries): Promise<string | undefined> {
  const [row] = await db.run(only)
  return row?.id
}
