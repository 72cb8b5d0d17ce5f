/** `sandlot secrets ls`: the names of secrets, never their values. */
import { addSessionOption, defineCommand } from '../../core/command.ts'
import { readCount } from '../../core/parse.ts'
import { secretFields } from '../../core/shapes.ts'
import { showTime } from '../../core/times.ts'

interface Options {
  session?: string
  limit: string
  cursor?: string
}

export const define = defineCommand<Options>({
  declare: (command) =>
    addSessionOption(command, 'those of this session alone')
      .option('--limit <count>', 'how many to list at most, up to 100', '100')
      .option('--cursor <cursor>', 'go on where the last page ended'),
  examples: ['sandlot secrets ls', 'sandlot secrets ls --json=name,created_at'],
  fields: secretFields,
  handle: async ({ options, api, output }) => {
    const limit = readCount(options.limit, '--limit')
    const { session: sandbox_id, cursor } = options
    const page = await api.call('listSecrets', { query: { limit, cursor, sandbox_id } })
    const rows = page.data.map(({ name, sandbox_id, created_at }) => [
      name,
      sandbox_id ?? 'all',
      showTime(created_at),
    ])
    output.list(page, ['NAME', 'SESSION', 'SET AT'], rows)
    if (page.next_cursor !== null) output.note(`There are more: --cursor ${page.next_cursor}`)
  },
})
