import { addSessionOption, defineCommand } from '../../core/command.ts'
import { CliError } from '../../core/errors.ts'
import { hasPipedInput } from '../../core/input.ts'
import { createdFileFields } from '../../core/shapes.ts'
import { sendFile } from '../../files/upload.ts'
import { offerToOverwrite } from './lines.ts'

interface Options {
  content?: string
  from?: string
  fromFile?: string
  overwrite?: boolean
  mode?: string
}

export const define = defineCommand<Options>({
  declare: (command) =>
    addSessionOption(command)
      .argument('<path>', 'relative to /workspace, or absolute')
      .option('--content <text>', 'the text to write')
      .option('--from <file>', 'a local file to copy; - is stdin')
      .option('--from-file <file>', 'same as --from')
      .option('--overwrite', 'replace the file if it exists')
      .option('--mode <mode>', 'permissions in octal, such as 755'),
  notes: '\nWithout --content or --from, the data piped to stdin is written.',
  examples: [
    "sandlot files create notes.txt --content 'to do'",
    'sandlot files create src/main.py --from main.py --overwrite',
    'generate | sandlot files create data.json',
  ],
  fields: createdFileFields,
  handle: async ({ args: [path = ''], options, settings, session, api, output }) => {
    const source = readSource(options)
    await settings.apiKey(await settings.baseUrl())
    const id = await session()
    const { mode, overwrite = false } = options
    const query = { path, mode, overwrite: overwrite ? undefined : ('false' as const) }
    const sending =
      'content' in source
        ? api.call('writeRawFile', { params: { id }, query, bytes: [Buffer.from(source.content)] })
        : sendFile({ api, id, path, output }, source.local, { mode, overwrite, keepsMode: false })
    const created = await sending.catch(offerToOverwrite)
    output.result(created, `${created.path}\n`)
    output.aside(`Bytes written: ${created.size}.`)
  },
})

function readSource({ content, fromFile, from: local = fromFile }: Options) {
  if (content !== undefined && local !== undefined) {
    throw new CliError('usage', '--content and --from are mutually exclusive.')
  }
  if (content !== undefined) return { content }
  if (local === undefined && !hasPipedInput()) {
    throw new CliError('usage', 'There is nothing to write. Pass --content or --from, or pipe data to stdin.')
  }
  return { local: local ?? '-' }
}
