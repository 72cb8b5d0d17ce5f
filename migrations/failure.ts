import { MigrationFailed } from './migrate.ts'

/**
 * Matches error codes that mean that the database cannot be used: network errors, a wrong user, password or
 * database, or a server that is starting or shutting down.
 */
const unreachable = /^(E[A-Z_]+|08...|28...|3D000|57P0.)$/
const disconnected = /Connection terminated|Client has encountered a connection error/

/**
 * Returns whether an error can mean that the database server is still starting. A rejected user or a missing
 * database cannot.
 */
export const isStarting = (error: unknown): boolean =>
  !(error instanceof MigrationFailed) &&
  /^(E[A-Z_]+|57P03)$/.test((error as NodeJS.ErrnoException).code ?? '')

const again =
  'Then run `npm run migrate` again. It continues after the last completed step. The old version can keep running.'

export function describeFailure(error: unknown): string {
  const failed = error instanceof MigrationFailed ? error : undefined
  const { code = '', message } = (failed?.cause ?? error) as NodeJS.ErrnoException
  const isUnreachable = unreachable.test(code) || disconnected.test(message)
  if (failed && isUnreachable)
    return `Lost the connection to the database during ${failed.migration} (${message}).\nCheck the database. ${again}`
  if (failed) return `${failed.migration} failed: ${message}\nFix the cause. ${again}`
  if (isUnreachable)
    return `Cannot connect to the database (${message || code}). Check that it is running and that DATABASE_URL is correct.`
  return `The migration failed: ${message}\nFix the cause. ${again}`
}
