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
      .option('--old <text>', 'the text to replace; it must be there exactly once')
      .option('--old-file <file>', 'the same, from a file of this machine')
      .option('--new <text>', 'the text to put in its place')
      .option('--new-file <file>', 'the same, from a file of this machine')
      .option('--all', 'replace it everywhere in the file')
      .option('--replace-all', 'the same')
      .option('--if-match <sha256>', 'refuse unless the file has this sha256'),
  notes: '\nWithout any of these the file opens in $VISUAL or $EDITOR, and a diff is printed.',
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
          'Without a terminal, or with --no-input, no editor opens: pass --old and --new.',
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
  throw new CliError('usage', 'Give both --old and --new, or nothing to open an editor.')
}

async function readText(text: string | undefined, file: string | undefined, option: string) {
  if (text !== undefined && file !== undefined)
    throw new CliError('usage', `--${option} and --${option}-file do not go together.`)
  if (file === undefined) return text
  const read = decodeUtf8(await readLocalFile(file))
  if (read === undefined) throw new CliError('usage', `${file} is not UTF-8 text.`)
  return read
}
