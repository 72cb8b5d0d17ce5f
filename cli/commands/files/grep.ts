import { longestSearchMs, type Reply } from '../../core/api.ts'
import { addSessionOption, defineCommand } from '../../core/command.ts'
import { exitCodes } from '../../core/errors.ts'
import { matchFields } from '../../core/shapes.ts'
import { line, nameBytes, reportMore, textBytes } from './names.ts'

export const define = defineCommand<{
  include?: string
  ignoreCase?: boolean
  fixed?: boolean
  filesWithMatches?: boolean
}>({
  declare: (command) =>
    addSessionOption(command)
      .argument('<pattern>', 'a POSIX extended regular expression')
      .argument('[path]', 'a file, or a folder to look in at any depth; /workspace by default')
      .option(
        '--include <glob>',
        'only files whose name matches, such as "*.ts"; with a /, whose path matches',
      )
      .option('-n, --line-number', 'number the lines, as always')
      .option('-r, --recursive', 'look in at any depth, as always')
      .option('-l, --files-with-matches', 'print the paths of the files alone, each once')
      .option('-i, --ignore-case', 'do not tell capital letters from small ones')
      .option('-F, --fixed', 'take the pattern as plain text'),
  notes: `
The pattern may use \\d \\w \\s \\h \\b \\t, their negations, and (?:…), as in other
dialects. Lookaround, backreferences, and flags such as (?i) are refused.

Exits with 1 when nothing matches. Names binary files on stderr.`,
  examples: [
    "sandlot files grep 'TODO|FIXME' src",
    'sandlot files grep -rni todo',
    "sandlot files grep -F 'a.b' --include '*.ts' --json=path,line",
  ],
  fields: matchFields,
  list: 'matches',
  handle: async ({ args, options, session, api, output, exitWith }) => {
    const id = await session()
    const [pattern = '', path] = args
    const { include, ignoreCase, fixed } = options
    const query = { pattern, path, include, ignore_case: trueIf(ignoreCase), fixed: trueIf(fixed) }
    const found = await api.call('grepFiles', { params: { id }, query, timeoutMs: longestSearchMs })
    const lines = found.matches.map(({ path, path_base64, line: number, text, text_base64 }) =>
      line(nameBytes(path, path_base64), `:${number}:`, textBytes(text, text_base64)),
    )
    output.result(found, Buffer.concat(options.filesWithMatches ? onlyFiles(found) : lines))
    for (const path of found.skipped_binary) output.note(`sandlot: ${path}: binary file matches`)
    if (found.truncated) exitWith(reportMore(output, `${found.matches.length} lines`))
    if (found.matches.length === 0 && found.skipped_binary.length === 0) exitWith(exitCodes.failed)
  },
})

const onlyFiles = ({ matches }: Reply<'grepFiles'>): Buffer[] => [
  ...new Map(
    matches.map(({ path, path_base64 }) => [path_base64 ?? path, line(nameBytes(path, path_base64))]),
  ).values(),
]

const trueIf = (is: boolean | undefined) => (is ? ('true' as const) : undefined)
