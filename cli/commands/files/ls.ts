/** `sandlot files ls [PATH]`: what is in a folder. */
import type { FileEntry } from '../../../shared/contract/files.ts'
import { addSessionOption, defineCommand } from '../../core/command.ts'
import { fileEntryFields } from '../../core/shapes.ts'
import { line, nameBytes, saysCut } from './names.ts'

export const define = defineCommand<{ long?: boolean }>({
  declare: (command) =>
    addSessionOption(command)
      .argument('[path]', 'relative to /workspace, or absolute; /workspace by default')
      .option('-l, --long', 'show type, mode, size, time of change, and where links lead'),
  examples: ['sandlot files ls', 'sandlot files ls -l /etc', 'sandlot files ls --json=name,size'],
  fields: fileEntryFields,
  list: 'entries',
  handle: async ({ args, options, session, api, output }) => {
    const id = await session()
    const listed = await api.call('listFiles', { params: { id }, query: { path: args[0] } })
    const show = options.long ? longLine(listed.entries) : shortLine
    output.result(listed, Buffer.concat(listed.entries.map(show)))
    if (listed.truncated) output.note(saysCut(`${listed.entries.length} entries`))
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

function longLine(entries: FileEntry[]) {
  const width = Math.max(...entries.map(({ size }) => String(size).length))
  return ({ name, name_base64, type, size, mode, modified_at, target }: FileEntry) =>
    line(
      `${letters[type]}${permissions(mode)} ${String(size).padStart(width)} ${modified_at} `,
      nameBytes(name, name_base64),
      ...(target === undefined ? [] : [' -> ', nameBytes(target, undefined)]),
    )
}

/** `644` as `rw-r--r--`, with the letters of the special bits. */
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
