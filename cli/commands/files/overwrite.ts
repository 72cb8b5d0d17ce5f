import { CliError } from '../../core/errors.ts'

/** Rethrows an error. If the file exists, adds a hint about --overwrite. */
export function offerToOverwrite(error: unknown): never {
  if (!(error instanceof CliError) || error.code !== 'file_exists') throw error
  throw error.with({ hint: '--overwrite replaces it.' })
}
