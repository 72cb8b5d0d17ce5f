/** `sandlot session ls`: sessions, newest first. */
import { Option } from 'commander'
import { addPageOptions, defineCommand, type PageOptions, pageOf } from '../../core/command.ts'
import { sandboxFields } from '../../core/shapes.ts'
import { showTime } from '../../core/times.ts'

export const define = defineCommand<PageOptions & { all?: boolean; state: 'active' | 'destroyed' | 'all' }>({
  declare: (command) =>
    addPageOptions(
      command
        .option('-a, --all', 'list destroyed sessions too')
        .addOption(new Option('--state <state>').choices(['active', 'destroyed', 'all']).default('active')),
    ),
  examples: [
    'sandlot session ls',
    'sandlot session ls --all --json=id,state,destroy_reason',
    'sandlot session ls --quiet',
  ],
  fields: sandboxFields,
  handle: async ({ options, api, output }) => {
    const query = { state: options.all ? ('all' as const) : options.state, ...pageOf(options) }
    const page = await api.call('listSandboxes', { query })
    const rows = page.data.map(({ id, state, name, image, created_at, expires_at, destroyed_at }) => [
      id,
      state,
      name ?? '',
      image,
      showTime(created_at),
      showTime(destroyed_at ?? expires_at),
    ])
    output.list(page, ['ID', 'STATE', 'NAME', 'IMAGE', 'CREATED', 'ENDS'], rows)
    if (rows.length === 0) output.aside('No sessions. `sandlot session create` makes one.')
  },
})
