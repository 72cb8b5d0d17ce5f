/** `sandlot session ls`: sessions, newest first. */
import { Option } from 'commander'
import { defineCommand } from '../../core/command.ts'
import { readCount } from '../../core/parse.ts'
import { sandboxFields } from '../../core/shapes.ts'
import { showTime } from '../../core/times.ts'

interface Options {
  all?: boolean
  state: 'active' | 'destroyed' | 'all'
  limit: string
  cursor?: string
}

export const define = defineCommand<Options>({
  declare: (command) =>
    command
      .option('-a, --all', 'list destroyed sessions too')
      .addOption(new Option('--state <state>').choices(['active', 'destroyed', 'all']).default('active'))
      .option('--limit <count>', 'how many to list at most, up to 100', '100')
      .option('--cursor <cursor>', 'go on where the last page ended'),
  examples: [
    'sandlot session ls',
    'sandlot session ls --all --json=id,state,destroy_reason',
    'sandlot session ls --quiet',
  ],
  fields: sandboxFields,
  handle: async ({ options, api, output }) => {
    const page = await api.call('listSandboxes', {
      query: {
        state: options.all ? 'all' : options.state,
        limit: readCount(options.limit, '--limit'),
        cursor: options.cursor,
      },
    })
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
    if (page.next_cursor !== null) output.note(`There are more: --cursor ${page.next_cursor}`)
  },
})
