import { addSessionOption, defineCommand } from '../../core/command.ts'
import { globFields } from '../../core/shapes.ts'
import { line, nameBytes, reportMore } from './lines.ts'

export const define = defineCommand<{ path?: string }>({
  declare: (command) =>
    addSessionOption(command)
      .argument('<pattern>', 'such as "src/**/*.{ts,js}"; quote it, so that your shell does not expand it')
      .option('--path <path>', 'the folder to search; /workspace by default'),
  examples: ["sandlot files glob '**/*.py'", "sandlot files glob '*.log' --path /tmp"],
  fields: globFields,
  handle: async ({ args, options, session, api, output, exitWith }) => {
    const id = await session()
    const query = { pattern: args[0]!, path: options.path }
    const found = await api.call('globFiles', { params: { id }, query })
    const lines = found.paths.map((path, index) => line(nameBytes(path, found.paths_base64?.[String(index)])))
    output.result(found, Buffer.concat(lines))
    if (found.truncated) exitWith(reportMore(output, `${found.paths.length} paths`))
  },
})
