import type { FileEntry } from '../../../shared/contract/files.ts'
import { searchTimeoutMs } from '../../core/api.ts'
import { addSessionOption, defineCommand } from '../../core/command.ts'
import { fileEntryFields } from '../../core/shapes.ts'
import { showTime } from '../../core/times.ts'
import { line, nameBytes, reportMore } from './names.ts'

export const define = defineCommand<{ long?: boolean; all?: boolean }>({
  declare: (command) =>
    addSessionOption(command)
      .argument('[path]', 'relative to /workspace, or absolute; /workspace by default')
      .option('-l, --long', 'show type, mode, size, modification time and link targets')
      .option('-a, --all', 'at a terminal, include names that start with a dot'),
  notes: `
At a terminal, names that start with a dot are omitted, and -l shows ages and rounded sizes. Without a terminal, every
name is printed, with sizes in bytes and RFC 3339 times.`,
  examples: ['sandlot files ls', 'sandlot files ls -la /etc', 'sandlot files ls --json=name,size'],
  fields: fileEntryFields,
  list: 'entries',
  handle: async ({ args, options, session, api, output, exitWith }) => {
    const id = await session()
    const listed = await api.call('listFiles', {
      params: { id },
      query: { path: args[0] },
      timeoutMs: searchTimeoutMs,
    })
    const { entries } = listed
    const shown =
      options.all || !process.stdout.isTTY ? entries : entries.filter(({ name }) => name[0] !== '.')
    const show = options.long ? await longLine(shown) : shortLine
    output.result(listed, Buffer.concat(shown.map(show)))
    const hidden = entries.length - shown.length
    if (hidden > 0) output.aside(`Hidden entries: ${hidden}. Use -a to include names that start with a dot.`)
    if (listed.truncated) exitWith(reportMore(output, `${listed.entries.length} entries`))
  },
})

const shortLine = ({ name, name_base64 }: FileEntry) => line(nameBytes(name, name_base64))

const letters: Record<FileEntry['type'], string> = {
  file: '-',
  directory: 'd',
  symlink: 'l',
  fifo: 'p',
  socket: 's',
  block: 'b',
  character: 'c',
}

async function longLine(entries: FileEntry[]) {
  const showSize = process.stdout.isTTY ? (await import('pretty-bytes')).default : String
  const columns = [
    ({ size }: FileEntry) => showSize(size),
    ({ modified_at }: FileEntry) => showTime(modified_at),
  ].map((show) => {
    const width = Math.max(...entries.map((entry) => show(entry).length))
    return (entry: FileEntry) => show(entry).padStart(width)
  })
  return (entry: FileEntry) => {
    const { name, name_base64, type, mode, target, target_base64 } = entry
    const cells = [`${letters[type]}${permissions(mode)}`, ...columns.map((cell) => cell(entry)), '']
    const end = target === undefined ? [] : [' -> ', nameBytes(target, target_base64)]
    return line(cells.join(' '), nameBytes(name, name_base64), ...end)
  }
}

/** Formats `644` as `rw-r--r--`, with setuid, setgid and sticky bits. */
function permissions(mode: string): string {
  const bits = Number.parseInt(mode, 8)
  const special = ['s', 's', 't'].map((letter, index) => ((bits >> (11 - index)) & 1 ? letter : undefined))
  return [6, 3, 0]
    .map((shift, index) => {
      const three = bits >> shift
      const runs = three & 1 ? 'x' : '-'
      const letter = special[index]
      const last = letter === undefined ? runs : three & 1 ? letter : letter.toUpperCase()
      return `${three & 4 ? 'r' : '-'}${three & 2 ? 'w' : '-'}${last}`
    })
    .join('')
}
