/** `npm run migrate`: brings the database to the newest migration, while the old version works. */
import { MigrationFailed, migrate } from './migrate.ts'

/** Errors of the network, or PostgreSQL's: no such user, password or database, or it is starting or ending. */
const noWayIn = /^(E[A-Z_]+|08...|28...|3D000|57P0.)$/
const brokenOff = /Connection terminated|Client has encountered a connection error/

const again =
  'Run `npm run migrate` again then: it goes on where it ended. The old version may run meanwhile.'

/** @returns what went wrong and what to do */
function tell(error: unknown): string {
  const failed = error instanceof MigrationFailed ? error : undefined
  const { code = '', message } = (failed?.cause ?? error) as NodeJS.ErrnoException
  const isAway = noWayIn.test(code) || brokenOff.test(message)
  if (failed && isAway)
    return `The connection to the database was lost during ${failed.migration} (${message}).\n${again}`
  if (failed) return `${failed.migration} failed: ${message}\nMend what it says. ${again}`
  if (isAway) return `Cannot use the database (${message || code}): is it running, and is DATABASE_URL right?`
  return `The database could not be migrated: ${message}\nMend what it says. ${again}`
}

const databaseUrl = process.env.DATABASE_URL
if (!databaseUrl) {
  console.error('DATABASE_URL is not set: postgresql://user:password@host/database')
  process.exit(2)
}
try {
  const applied = await migrate(databaseUrl, { say: (line) => console.error(line) })
  console.log(applied.length === 0 ? 'The database is up to date.' : `Applied ${applied.join(', ')}.`)
} catch (error) {
  console.error(tell(error))
  process.exit(1)
}
