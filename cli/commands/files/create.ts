/** `sandlot files create PATH`: writes a file, from an option, a local file or stdin. */
import { addSessionOption, defineCommand } from '../../core/command.ts'
import { CliError } from '../../core/errors.ts'
import { decodeUtf8, hasPipedInput, readInput, readLocalFile } from '../../core/input.ts'
import { createdFileFields } from '../../core/shapes.ts'

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
      .option('--from <file>', 'a file of this machine to copy; - is stdin')
      .option('--from-file <file>', 'the same')
      .option('--overwrite', 'replace the file if it exists')
      .option('--mode <mode>', 'permissions in octal, such as 755'),
  notes: '\nWithout --content or --from, it writes what is piped in.',
  examples: [
    "sandlot files create notes.txt --content 'to do'",
    'sandlot files create src/main.py --from main.py --overwrite',
    'generate | sandlot files create data.json',
  ],
  fields: createdFileFields,
  handle: async ({ args, options, settings, session, api, output }) => {
    await settings.apiKey(await settings.baseUrl())
    const content = await readContent(options, output.note)
    const id = await session()
    const created = await api.call('createFile', {
      params: { id },
      body: {
        path: args[0]!,
        ...content,
        mode: options.mode,
        overwrite: options.overwrite,
      },
    })
    output.result(created, `${created.path}\n`)
    output.aside(`${created.size} bytes written.`)
  },
})

async function readContent(options: Options, note: (text: string) => void) {
  const { content, from: fromFile = options.fromFile } = options
  if (content !== undefined && fromFile !== undefined) {
    throw new CliError('usage', '--content and --from do not go together.')
  }
  if (content !== undefined) return { content }
  if (fromFile === undefined && !hasPipedInput()) {
    throw new CliError('usage', 'There is nothing to write: pass --content or --from, or pipe it in.')
  }
  const bytes =
    fromFile === undefined || fromFile === '-' ? await readInput(note) : await readLocalFile(fromFile)
  const text = decodeUtf8(bytes)
  return text === undefined
    ? { content: bytes.toString('base64'), encoding: 'base64' as const }
    : { content: text }
}
