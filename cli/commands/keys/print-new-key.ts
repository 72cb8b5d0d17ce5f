import type { Reply } from '../../core/api.ts'
import { addStory, describeError } from '../../core/errors.ts'
import type { Output } from '../../core/output.ts'

/**
 * Prints a new API key, which the service shows only once.
 * @param save saves the key for this client
 * @throws {CliError} if the key cannot be saved; it is printed nevertheless, with --json as part of the error
 */
export async function printNewKey(
  output: Output,
  key: Reply<'createApiKey'>,
  save: (() => Promise<void>) | undefined,
): Promise<void> {
  try {
    await save?.()
  } catch (error) {
    const problem = addStory(
      describeError(error),
      'The key was created, but could not be saved.',
      'Keep the printed key, because it cannot be shown again.',
    )
    if (!output.json) output.result(key, `${key.key}\n`)
    throw problem.with({ details: { ...problem.details, ...key } })
  }
  output.result(key, `${key.key}\n`)
}
