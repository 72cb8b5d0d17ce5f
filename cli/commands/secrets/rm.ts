import { addSessionOption, defineCommand } from '../../core/command.ts'
import { idOfGiven } from '../../core/session.ts'

export const define = defineCommand<{ session?: string }>({
  declare: (command) =>
    addSessionOption(command, "this session's, not the account's").argument(
      '<name>',
      'as `sandlot secrets ls` shows it',
    ),
  notes: '\nAsks first; without a terminal it needs --yes.',
  examples: ['sandlot secrets rm API_TOKEN', 'sandlot secrets rm --yes API_TOKEN'],
  fields: ['name', 'sandbox_id', 'deleted'],
  handle: async ({ args, options, api, output, ask }) => {
    const name = args[0]!
    const whose = options.session === undefined ? 'the account' : `the session ${options.session}`
    const question = `Delete the secret ${name} of ${whose}? Nobody can read its value again.`
    await ask.confirm(question, 'Nothing was deleted.')
    const sandbox_id = await idOfGiven(options.session, api)
    await api.call('deleteSecret', { params: { name }, query: { sandbox_id } })
    output.result({ name, sandbox_id: sandbox_id ?? null, deleted: true }, `${name}\n`)
    output.aside('Commands that run already keep it.')
  },
})
