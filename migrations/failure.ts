/** Messages for the operator about a migration that failed. */
import { MigrationFailed } from './migrate.ts'

/** Errors of the network, or PostgreSQL's: no such user, password or database, or it is starting or ending. */
const noWayIn = /^(E[A-Z_]+|08...|28...|3D000|57P0.)$/
const brokenOff = /Connection terminated|Client has encountered a connection error/

const again =
  'Run `npm run migrate` again then: it goes on where it ended. The old version may run meanwhile.'

/** Returns what went wrong and what to do. */
export function describeFailure(error: unknown): string {
  const failed = error instanceof MigrationFailed ? error : undefined
  const { code = '', message } = (failed?.cause ?? error) as NodeJS.ErrnoException
  const isAway = noWayIn.test(code) || brokenOff.test(message)
  if (failed && isAway)
    return `The connection to the database was lost during ${failed.migration} (${message}).\n${again}`
  if (failed) return `${failed.migration} failed: ${message}\nMend what it says. ${again}`
  if (isAway) return `Cannot use the database (${message || code}): is it running, and is DATABASE_URL right?`
  return `The database could not be migrated: ${message}\nMend what it says. ${again}`
}
