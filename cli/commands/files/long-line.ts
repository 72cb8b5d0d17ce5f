/** Formats entries as `ls -l` does. */
import type { FileEntry, ListedEntry } from '../../../shared/contract/files.ts'
import { showTime } from '../../core/times.ts'
import { line, nameBytes } from './names.ts'

/** Returns the exact bytes of an entry's path, or of its name if only one folder was listed. */
export const nameOf = ({ name, name_base64, path, path_base64 }: ListedEntry): Buffer =>
  path === undefined ? nameBytes(name, name_base64) : nameBytes(path, path_base64)

const letters: Record<FileEntry['type'], string> = {
  file: '-',
  directory: 'd',
  symlink: 'l',
  fifo: 'p',
  socket: 's',
  block: 'b',
  character: 'c',
}

/**
 * Returns a function that formats an entry as `ls -l` does, with columns wide enough for all of these
 * entries.
 */
export async function longLine(entries: ListedEntry[]) {
  const showSize = process.stdout.isTTY ? (await import('pretty-bytes')).default : String
  const columns = [
    ({ owner, uid }: ListedEntry) => owner ?? String(uid),
    ({ group, gid }: ListedEntry) => group ?? String(gid),
    ({ size }: ListedEntry) => showSize(size),
    ({ modified_at }: ListedEntry) => showTime(modified_at),
  ].map((show) => {
    const width = entries.reduce((width, entry) => Math.max(width, show(entry).length), 0)
    return (entry: ListedEntry) => show(entry).padStart(width)
  })
  return (entry: ListedEntry) => {
    const { type, mode, target, target_base64 } = entry
    const cells = [`${letters[type]}${permissions(mode)}`, ...columns.map((cell) => cell(entry)), '']
    const end = target === undefined ? [] : [' -> ', nameBytes(target, target_base64)]
    return line(cells.join(' '), nameOf(entry), ...end)
  }
}

/** Formats a mode such as `644` as `rw-r--r--`, including the setuid, setgid and sticky bits. */
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
