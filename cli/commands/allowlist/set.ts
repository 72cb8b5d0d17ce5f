import { defineCommand } from '../../core/command.ts'
import { CliError } from '../../core/errors.ts'
import { decodeUtf8, readInput, readLocalFile } from '../../core/input.ts'
import { allowlistFields } from '../../core/shapes.ts'
import { showAllowlist } from './show.ts'

export const define = defineCommand<{ file?: string }>({
  declare: (command) =>
    command
      .argument('[command...]', 'one entry each: a command, or in quotes a command with its first arguments')
      .option(
        '--file <file>',
        'read entries from a file, one a line; - is stdin. Lines that begin with # are skipped',
      ),
  notes: `
An entry allows every command that begins with its words; more arguments may follow. A * stands for any one
argument. The list holds for every sandbox of the account as soon as this command has ended.`,
  examples: [
    "sandlot allowlist set ls cat 'git status' 'npm run *'",
    'sandlot allowlist set --file allowed.txt',
  ],
  fields: allowlistFields,
  handle: async ({ args, options, settings, api, output }) => {
    if ((options.file === undefined) === (args.length === 0)) {
      throw new CliError('usage', 'Give the entries, or --file with one a line.', {
        hint: '`sandlot allowlist clear` lets every command run.',
      })
    }
    await settings.apiKey(await settings.baseUrl())
    const commands = options.file === undefined ? args : await readEntries(options.file, output.note)
    showAllowlist(await api.call('setAllowlist', { body: { commands } }), output)
  },
})

async function readEntries(file: string, note: (text: string) => void): Promise<string[]> {
  const bytes = file === '-' ? await readInput(note) : await readLocalFile(file)
  const text = decodeUtf8(bytes)
  if (text === undefined) throw new CliError('usage', `${file} is not UTF-8 text.`)
  return text
    .replace(/^\ufeff/, '')
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
}
