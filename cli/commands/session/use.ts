import { defineCommand } from '../../core/command.ts'
import { CliError } from '../../core/errors.ts'
import { describeSession, useSession } from '../../core/session.ts'
import { sandboxFields } from '../../core/shapes.ts'

export const define = defineCommand<{ none?: boolean }>({
  declare: (command) =>
    command
      .usage('[options] ID\n       sandlot session use --none')
      .argument('[id]', 'the session, by id or name')
      .option('--none', 'unset the current session'),
  notes: `
Commands use the current session until it ends. --session and SANDLOT_SESSION override it. It is saved in the settings
file, or in the profile, and applies to every terminal. \`sandlot session ls\` marks it with a *.`,
  examples: ['sandlot session use build', 'sandlot session use --none'],
  fields: sandboxFields,
  handle: async ({ args, options, settings, session, api, output }) => {
    const [typed] = args
    if ((typed === undefined) !== (options.none === true)) {
      throw new CliError('usage', 'Pass either a session or --none.', {
        hint: '`sandlot session get` shows the session that commands use.',
      })
    }
    if (typed === undefined) {
      await settings.save({ session: undefined })
      return output.result({}, '')
    }
    const sandbox = await useSession(settings, async () =>
      api.call('getSandbox', { params: { id: await session(typed) } }),
    )
    output.result(sandbox, `${sandbox.id}\n`)
    output.aside(`The current session is ${describeSession(sandbox)}.`)
    const other = await settings.find('session')
    if (other !== undefined) output.note(`${other.source} is set and overrides the current session.`)
  },
})
