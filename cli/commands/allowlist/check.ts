import { defineCommand } from '../../core/command.ts'
import { CliError, exitCodes } from '../../core/errors.ts'
import { decisionFields } from '../../core/shapes.ts'

export const define = defineCommand<{ shell?: string }>({
  declare: (command) =>
    command
      .argument('[command...]', 'the command and its arguments, after --')
      .passThroughOptions()
      .option('-c, --shell <script>', 'a script for /bin/sh -c, instead of a command'),
  notes:
    '\nExits with code 0 and prints the entry that allows the command, or exits with code 1 and prints the reason to stderr.',
  examples: ['sandlot allowlist check -- git push', "sandlot allowlist check -c 'ls | wc -l'"],
  fields: decisionFields,
  handle: async ({ args, options, api, output, exitWith }) => {
    if ((options.shell === undefined) === (args.length === 0)) {
      throw new CliError('usage', 'Pass either a command, or a script with -c.')
    }
    const decision = await api.call('checkAllowlist', { body: { command: options.shell ?? args } })
    output.result(decision, decision.entry === null ? '' : `${decision.entry}\n`)
    if (decision.reason !== null) output.note(decision.reason)
    else if (decision.entry === null) output.aside('There is no allowlist, so all commands are allowed.')
    if (!decision.allowed) exitWith(exitCodes.failed)
  },
})
