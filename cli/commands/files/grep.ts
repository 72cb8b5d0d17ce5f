import type { Reply } from '../../core/api.ts'
import { addSessionOption, defineCommand } from '../../core/command.ts'
import { exitCodes } from '../../core/errors.ts'
import { matchFields } from '../../core/shapes.ts'
import { line, nameBytes, reportMore, textBytes } from './lines.ts'

export const define = defineCommand<{
  include?: string
  ignoreCase?: boolean
  fixed?: boolean
  filesWithMatches?: boolean
}>({
  declare: (command) =>
    addSessionOption(command)
      .argument('<pattern>', 'a POSIX extended regular expression')
      .argument('[path]', 'a file, or a folder to search recursively; /workspace by default')
      .option(
        '--include <glob>',
        'search only files whose name matches, such as "*.ts"; a pattern with a / matches the path',
      )
      .option('-n, --line-number', 'accepted and ignored: lines are always numbered')
      .option('-r, --recursive', 'accepted and ignored: the search is always recursive')
      .option('-l, --files-with-matches', 'print only the path of each matching file')
      .option('-i, --ignore-case', 'ignore case')
      .option('-F, --fixed', 'treat the pattern as plain text'),
  notes: `
The pattern may also use \\d \\w \\s \\h \\b \\t, their negations, and (?:…). Lookaround,
backreferences and flags such as (?i) are rejected.

Exits with code 1 if nothing matches. Matching binary files are listed on stderr.`,
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
    const found = await api.call('grepFiles', { params: { id }, query })
    const lines = found.matches.map(({ path, path_base64, line: number, text, text_base64 }) =>
      line(nameBytes(path, path_base64), `:${number}:`, textBytes(text, text_base64)),
    )
    output.result(found, Buffer.concat(options.filesWithMatches ? onlyFiles(found) : lines))
    for (const path of found.skipped_binary) output.note(`sandlot: ${path}: binary file matches`)
    if (found.truncated) exitWith(reportMore(output, `${found.matches.length} lines`))
    else if (found.matches.length === 0 && found.skipped_binary.length === 0) exitWith(exitCodes.failed)
  },
})

const onlyFiles = ({ matches }: Reply<'grepFiles'>): Buffer[] => [
  ...new Map(
    matches.map(({ path, path_base64 }) => [path_base64 ?? path, line(nameBytes(path, path_base64))]),
  ).values(),
]

const trueIf = (is: boolean | undefined) => (is ? ('true' as const) : undefined)
