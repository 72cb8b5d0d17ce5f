/** `sandlot files glob PATTERN`: paths that match. */
import { addExamples, addSessionOption, type Define, handleWith } from '../../core/command.ts'
import { selectSession } from '../../core/session.ts'
import { globFields } from '../../core/shapes.ts'
import { line, nameBytes, saysCut } from './names.ts'

interface Options {
  path?: string
}

export const define: Define = (command) => {
  addSessionOption(command)
    .argument('<pattern>', 'such as "src/**/*.{ts,js}"; quoted, so that your shell leaves it alone')
    .option('--path <path>', 'the folder to look in; /workspace by default')
  addExamples(command, "sandlot files glob '**/*.py'", "sandlot files glob '*.log' --path /tmp")
  handleWith<Options>(
    command,
    async ({ args, options, settings, api, output }) => {
      const id = await selectSession(settings, api)
      const query = { pattern: args[0]!, ...(options.path === undefined ? {} : { path: options.path }) }
      const found = await api.call('globFiles', { params: { id }, query })
      const lines = found.paths.map((path, index) =>
        line(nameBytes(path, found.paths_base64?.[String(index)])),
      )
      output.result(found, Buffer.concat(lines))
      if (found.truncated) output.note(saysCut(`${found.paths.length} paths`))
    },
    { json: { fields: globFields } },
  )
}
