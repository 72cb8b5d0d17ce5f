import { addSessionOption, defineCommand } from '../../core/command.ts'
import { CliError } from '../../core/errors.ts'
import { decodeUtf8, readLocalFile } from '../../core/input.ts'
import { editedFileFields } from '../../core/shapes.ts'

interface Options {
  old?: string
  oldFile?: string
  new?: string
  newFile?: string
  all?: boolean
  replaceAll?: boolean
  ifMatch?: string
}

export const define = defineCommand<Options>({
  declare: (command) =>
    addSessionOption(command)
      .argument('<path>', 'relative to /workspace, or absolute')
      .option('--old <text>', 'the text to replace; it must occur exactly once')
      .option('--old-file <file>', 'a local file that contains the text to replace')
      .option('--new <text>', 'the replacement')
      .option('--new-file <file>', 'a local file that contains the replacement')
      .option('--all', 'replace every occurrence')
      .option('--replace-all', 'same as --all')
      .option('--if-match <sha256>', 'fail unless the file has this SHA-256'),
  notes: '\nWithout these options, the file opens in $VISUAL or $EDITOR, and a diff is printed.',
  examples: [
    "sandlot files edit app.conf --old 'debug = false' --new 'debug = true'",
    'sandlot files edit app.conf',
  ],
  fields: editedFileFields,
  handle: async ({ args, options, settings, session, api, output, ask }) => {
    const path = args[0]!
    const { old, new: other } = await readTexts(options)
    if (old === undefined || other === undefined) {
      if (!ask.isPossible()) {
        throw new CliError(
          'usage',
          'The editor needs a terminal, so it cannot be used with --no-input. Pass --old and --new instead.',
        )
      }
      const { editByHand } = await import('../../core/editor.ts')
      return await editByHand({ api, id: await session(), path, settings, output })
    }
    const id = await session()
    const edited = await api.call('editFile', {
      params: { id },
      body: {
        path,
        old,
        new: other,
        replace_all: options.all || options.replaceAll,
        if_match: options.ifMatch,
      },
    })
    output.result(edited, `${edited.path}\n`)
    output.aside(`${edited.replacements} replaced.`)
  },
})

async function readTexts(options: Options): Promise<{ old?: string; new?: string }> {
  const old = await readText(options.old, options.oldFile, 'old')
  const other = await readText(options.new, options.newFile, 'new')
  if (old !== undefined && other !== undefined) return { old, new: other }
  const rest = [old, other, options.all, options.replaceAll, options.ifMatch]
  if (rest.every((given) => given === undefined)) return {}
  throw new CliError('usage', 'Pass both --old and --new, or omit both to open an editor.')
}

async function readText(text: string | undefined, file: string | undefined, option: string) {
  if (text !== undefined && file !== undefined)
    throw new CliError('usage', `--${option} and --${option}-file are mutually exclusive.`)
  if (file === undefined) return text
  const read = decodeUtf8(await readLocalFile(file))
  if (read === undefined) throw new CliError('usage', `${file} is not UTF-8 text.`)
  return read
}
