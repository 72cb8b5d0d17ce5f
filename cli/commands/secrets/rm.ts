import { addSessionOption, defineCommand } from '../../core/command.ts'
import { idOfGiven } from '../../core/session.ts'

export const define = defineCommand<{ session?: string }>({
  declare: (command) =>
    addSessionOption(command, "delete this session's secret, not the account's").argument(
      '<name>',
      'the name, as shown by `sandlot secrets ls`',
    ),
  notes: '\nAsks for confirmation; without a terminal, --yes is required.',
  examples: ['sandlot secrets rm API_TOKEN', 'sandlot secrets rm --yes API_TOKEN'],
  fields: ['name', 'sandbox_id', 'deleted'],
  handle: async ({ args, options, api, output, ask }) => {
    const name = args[0]!
    const owner = options.session === undefined ? 'the account' : `session ${options.session}`
    const question = `Delete the secret ${name} from ${owner}? Its value cannot be recovered.`
    await ask.confirm(question, 'Nothing was deleted.')
    const sandbox_id = await idOfGiven(options.session, api)
    await api.call('deleteSecret', { params: { name }, query: { sandbox_id } })
    output.result({ name, sandbox_id: sandbox_id ?? null, deleted: true }, `${name}\n`)
    output.aside('Commands that are already running keep the secret.')
  },
})
