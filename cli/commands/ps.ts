import {
  addPageOptions,
  addSessionOption,
  defineCommand,
  type PageOptions,
  readPage,
} from '../core/command.ts'
import { execSummaryFields } from '../core/shapes.ts'
import { showTime } from '../core/times.ts'
import { isRunning, listCommands } from '../exec/exec-id.ts'
import { marked } from '../files/tar-commands.ts'

export const define = defineCommand<PageOptions & { running?: boolean }>({
  declare: (command) =>
    addPageOptions(
      addSessionOption(command).option('-r, --running', 'list only running commands, from all pages'),
    ),
  notes: `
At a terminal, commands that \`sandlot cp\` runs to copy folders are marked. \`sandlot ls\` lists the sessions, and
\`sandlot exec ps\` runs the \`ps\` program.`,
  examples: ['sandlot ps', 'sandlot ps --running --session build', 'sandlot ps --json=id,status,command'],
  fields: execSummaryFields,
  handle: async ({ options, session, api, output }) => {
    const query = readPage(options)
    const id = await session()
    const page = options.running
      ? { data: (await listCommands(api, id)).filter(isRunning), next_cursor: null }
      : await api.call('listExecs', { params: { id }, query })
    const rows = page.data.map((exec) => [
      exec.id,
      exec.status,
      exec.signal ?? String(exec.exit_code ?? ''),
      showTime(exec.started_at),
      (exec.duration_ms / 1000).toFixed(3),
      process.stdout.isTTY ? marked(exec.command) : exec.command,
    ])
    output.list(page, ['ID', 'STATUS', 'EXIT', 'STARTED', 'SECONDS', 'COMMAND'], rows)
    output.aside(`These commands belong to session ${id}. \`sandlot ls\` lists the sessions.`)
  },
})
