/** `sandlot ps`: the commands of a session, newest first. */
import { addPageOptions, addSessionOption, defineCommand, type PageOptions, pageOf } from '../core/command.ts'
import { execSummaryFields } from '../core/shapes.ts'
import { showTime } from '../core/times.ts'

export const define = defineCommand<PageOptions>({
  declare: (command) => addPageOptions(addSessionOption(command)),
  notes: '\n`sandlot ls` lists the sessions. `sandlot exec ps` runs the program ps.',
  examples: ['sandlot ps', 'sandlot ps --session build', 'sandlot ps --json=id,status,command'],
  fields: execSummaryFields,
  handle: async ({ options, session, api, output }) => {
    const query = pageOf(options)
    const id = await session()
    const page = await api.call('listExecs', { params: { id }, query })
    const rows = page.data.map((exec) => [
      exec.id,
      exec.status,
      exec.signal ?? String(exec.exit_code ?? ''),
      showTime(exec.started_at),
      (exec.duration_ms / 1000).toFixed(3),
      exec.command,
    ])
    output.list(page, ['ID', 'STATUS', 'EXIT', 'STARTED', 'SECONDS', 'COMMAND'], rows)
    output.aside(`These are commands of the session ${id}; \`sandlot ls\` lists the sessions.`)
  },
})
