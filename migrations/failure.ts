/** Error messages for operators about a failed migration. */
import { MigrationFailed } from './migrate.ts'

/** Network errors, and errors of PostgreSQL about a wrong user, password or database, or a startup or shutdown. */
const unreachable = /^(E[A-Z_]+|08...|28...|3D000|57P0.)$/
const disconnected = /Connection terminated|Client has encountered a connection error/

/** Returns whether PostgreSQL does not accept connections yet, as opposed to rejecting this user or database. */
export const isStarting = (error: unknown): boolean =>
  !(error instanceof MigrationFailed) &&
  /^(E[A-Z_]+|57P03)$/.test((error as NodeJS.ErrnoException).code ?? '')

const again =
  'Then run `npm run migrate` again, which continues after the last completed step. The old version can keep running.'

/** Returns the cause and the next step. */
export function describeFailure(error: unknown): string {
  const failed = error instanceof MigrationFailed ? error : undefined
  const { code = '', message } = (failed?.cause ?? error) as NodeJS.ErrnoException
  const isUnreachable = unreachable.test(code) || disconnected.test(message)
  if (failed && isUnreachable)
    return `Lost the connection to the database during ${failed.migration} (${message}).\nCheck the database. ${again}`
  if (failed) return `${failed.migration} failed: ${message}\nFix the cause. ${again}`
  if (isUnreachable)
    return `Cannot connect to the database (${message || code}). Check that it is running, and check DATABASE_URL.`
  return `The database could not be migrated: ${message}\nFix the cause. ${again}`
}
