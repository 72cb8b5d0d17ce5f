import type { ListedEntry } from '../../../shared/contract/files.ts'
import { addSessionOption, defineCommand } from '../../core/command.ts'
import { readCount } from '../../core/parse.ts'
import { fileEntryFields } from '../../core/shapes.ts'
import { line, longLine, nameOf, reportMore } from './lines.ts'

export const define = defineCommand<{ long?: boolean; all?: boolean; depth?: string }>({
  declare: (command) =>
    addSessionOption(command)
      .argument('[path]', 'relative to /workspace, or absolute; /workspace by default')
      .option('-l, --long', 'show type, mode, owner, group, size, modification time and link targets')
      .option('--depth <levels>', 'also list subfolders, down to this level; 1 by default')
      .option('-a, --all', 'at a terminal, include names that start with a dot'),
  notes: `
At a terminal, names that start with a dot are omitted, and -l shows ages and rounded sizes. Without a terminal, every
name is printed, with sizes in bytes and RFC 3339 times.`,
  examples: [
    'sandlot files ls',
    'sandlot files ls -la /etc',
    'sandlot files ls --depth 3 src',
    'sandlot files ls --json=name,size',
  ],
  fields: fileEntryFields,
  list: 'entries',
  handle: async ({ args, options, session, api, output, exitWith }) => {
    const depth = options.depth === undefined ? undefined : readCount(options.depth, '--depth')
    const id = await session()
    const listed = await api.call('listFiles', { params: { id }, query: { path: args[0], depth } })
    const { entries } = listed
    const shown = options.all || !process.stdout.isTTY ? entries : visible(entries)
    const show = options.long ? await longLine(shown) : shortLine
    output.result(listed, Buffer.concat(shown.map(show)))
    const hidden = entries.length - shown.length
    if (hidden > 0) output.aside(`Hidden entries: ${hidden}. Use -a to include names that start with a dot.`)
    if (listed.truncated) exitWith(reportMore(output, `${listed.entries.length} entries`))
  },
})

/**
 * Omits hidden entries and everything in hidden subfolders, even if the listed folder itself is hidden. The
 * folder is derived from the path of the first entry, which must therefore be directly in it.
 */
function visible(entries: ListedEntry[]): ListedEntry[] {
  const [{ name = '', path: first = name } = {}] = entries
  const below = first.length - name.length
  return entries.filter(({ name, path = name }) => !/(^|\/)\./.test(path.slice(below)))
}

const shortLine = (entry: ListedEntry) => line(nameOf(entry))
