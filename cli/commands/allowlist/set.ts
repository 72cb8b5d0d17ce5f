import { defineCommand } from '../../core/command.ts'
import { CliError } from '../../core/errors.ts'
import { decodeUtf8, readInput, readLocalFile } from '../../core/input.ts'
import { allowlistFields } from '../../core/shapes.ts'
import { showAllowlist } from './get.ts'

export const define = defineCommand<{ file?: string }>({
  declare: (command) =>
    command
      .argument(
        '[command...]',
        'one entry per argument: a command, or a quoted command with its first arguments',
      )
      .option(
        '--file <file>',
        'read entries from a file, one per line; - is stdin. Lines that start with # are skipped',
      ),
  notes: `
An entry allows every command that starts with its words, with any further arguments. A * matches any single
argument. The list applies to every sandbox of the account as soon as this command has exited.`,
  examples: [
    "sandlot allowlist set ls cat 'git status' 'npm run *'",
    'sandlot allowlist set --file allowed.txt',
  ],
  fields: allowlistFields,
  handle: async ({ args, options, settings, api, output }) => {
    if ((options.file === undefined) === (args.length === 0)) {
      throw new CliError('usage', 'Pass the entries either as arguments or in a file with --file.', {
        hint: 'To allow every command, run `sandlot allowlist clear`.',
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
