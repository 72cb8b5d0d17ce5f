/** `sandlot session rm [ID…]`: destroys sessions. */
import type { Reply } from '../../api.ts'
import { addSessionOption, type Define, handleWith } from '../../command.ts'
import { CliError, describeError } from '../../errors.ts'
import { askWhether } from '../../prompt.ts'
import { selectSession } from '../../session.ts'

interface Options {
  yes?: boolean
}

export const define: Define = (command) => {
  addSessionOption(command)
    .argument('[id...]', 'the sessions; by default the only one that is active')
    .option('-y, --yes', 'do not ask; needed off a terminal')
  handleWith<Options>(command, async ({ args, options, settings, api, output }) => {
    const ids = args.length > 0 ? args : [await selectSession(settings, api)]
    if (!options.yes && !(await askWhether(`Destroy ${ids.join(', ')}?`, '--yes'))) {
      throw new CliError('failed', 'Nothing was destroyed.')
    }
    const destroyed: Reply<'destroySandbox'>[] = []
    const failures: { id: string; error: CliError }[] = []
    for (const id of ids) {
      try {
        destroyed.push(await api.call('destroySandbox', { params: { id } }))
      } catch (error) {
        failures.push({ id, error: describeError(error) })
      }
    }
    if (failures.length === 0) return output.result({ data: destroyed }, textOf(destroyed))
    // What was done is told even so; with --json in the one object that tells of the failure.
    if (!output.json) output.result(undefined, textOf(destroyed))
    throw combine(failures, destroyed)
  })
}

const textOf = (destroyed: Reply<'destroySandbox'>[]) => destroyed.map(({ id }) => `${id}\n`).join('')

/** One error for all that failed, of the first one's kind. */
function combine(failures: { id: string; error: CliError }[], destroyed: unknown[]): CliError {
  const { error } = failures[0]!
  const lines = failures.map(({ id, error: { message } }) =>
    message.includes(id) ? message : `${id}: ${message}`,
  )
  const message = lines.join('\n')
  return new CliError(error.code, message, {
    hint: error.hint,
    exitCode: error.exitCode,
    details: { ...error.details, failed: failures.map(({ id }) => id), destroyed },
  })
}
