/** `sandlot exec ls`: the commands of a session, newest first. */
import { addSessionOption, defineCommand } from '../../core/command.ts'
import { readCount } from '../../core/parse.ts'
import { execSummaryFields } from '../../core/shapes.ts'
import { showTime } from '../../core/times.ts'

interface Options {
  limit: string
  cursor?: string
}

export const define = defineCommand<Options>({
  declare: (command) =>
    addSessionOption(command)
      .option('--limit <count>', 'how many to list at most, up to 100', '100')
      .option('--cursor <cursor>', 'go on where the last page ended'),
  notes: '\n`sandlot exec -- ls` runs the program ls.',
  examples: ['sandlot exec ls', 'sandlot exec ls --json=id,status,command'],
  fields: execSummaryFields,
  handle: async ({ options, session, api, output }) => {
    const limit = readCount(options.limit, '--limit')
    const id = await session()
    const page = await api.call('listExecs', { params: { id }, query: { limit, cursor: options.cursor } })
    const rows = page.data.map((exec) => [
      exec.id,
      exec.status,
      exec.signal ?? String(exec.exit_code ?? ''),
      showTime(exec.started_at),
      (exec.duration_ms / 1000).toFixed(3),
      exec.command,
    ])
    output.list(page, ['ID', 'STATUS', 'EXIT', 'STARTED', 'SECONDS', 'COMMAND'], rows)
    if (page.next_cursor !== null) output.note(`There are more: --cursor ${page.next_cursor}`)
    output.aside('These are commands of the session; `sandlot exec -- ls` runs the program ls.')
  },
})
