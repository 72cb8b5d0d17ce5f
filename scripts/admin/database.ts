/** The database that an operator means. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { readDotEnv, root } from '../root.mjs'
import { postgresUrl } from '../services/postgres.ts'
import { socketPath } from '../supervisor/data-folder.ts'

/**
 * DATABASE_URL of the environment or of .env, as for `npm start`; else its embedded one.
 * @throws in words for the terminal when there is neither
 */
export function findDatabase(): string {
  readDotEnv()
  if (process.env.DATABASE_URL) return process.env.DATABASE_URL
  const sockets = socketPath(join(root, '.data'))
  if (existsSync(join(sockets, '.s.PGSQL.5432'))) return postgresUrl(sockets)
  throw new Error('No database: set DATABASE_URL, or run npm start in this folder.')
}
