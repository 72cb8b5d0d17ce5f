import { CliError } from '../../core/errors.ts'

/** Adds a hint to a `file_exists` error, and throws it. */
export function offerToOverwrite(error: unknown): never {
  if (!(error instanceof CliError) || error.code !== 'file_exists') throw error
  throw error.with({ hint: '--overwrite replaces it.' })
}
