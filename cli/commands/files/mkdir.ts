import { addSessionOption, defineCommand } from '../../core/command.ts'
import { madeDirectoryFields } from '../../core/shapes.ts'

export const define = defineCommand<{ existOk?: boolean; mode?: string }>({
  declare: (command) =>
    addSessionOption(command)
      .argument('<path>', 'relative to /workspace, or absolute; missing parent folders are created')
      .option('-p, --exist-ok', 'succeed if the folder exists')
      .option('--mode <mode>', 'permissions in octal, such as 700; 755 by default'),
  examples: ['sandlot files mkdir build/logs', 'sandlot files mkdir -p cache --mode 700'],
  fields: madeDirectoryFields,
  handle: async ({ args: [path = ''], options: { existOk, mode }, session, api, output }) => {
    const id = await session()
    const made = await api.call('makeDirectory', { params: { id }, body: { path, exist_ok: existOk, mode } })
    output.result(made, `${made.path}\n`)
  },
})
