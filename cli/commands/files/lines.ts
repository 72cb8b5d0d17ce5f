/** Formats results of the file commands: readable text for a terminal, exact bytes for a pipe or a file. */
import type { FileEntry, ListedEntry } from '../../../shared/contract/files.ts'
import { CliError, exitCodes } from '../../core/errors.ts'
import type { Output } from '../../core/output.ts'
import { showTime } from '../../core/times.ts'

/**
 * Returns a file name to print: on one line for a terminal, as exact bytes otherwise.
 * @param base64 the exact bytes, given only if the name is not valid UTF-8
 */
export function nameBytes(text: string, base64: string | undefined): Buffer {
  if (process.stdout.isTTY) return Buffer.from(text.replace(/[\n\t]/g, '\ufffd'))
  return textBytes(text, base64)
}

/** Like {@link nameBytes}, but for text from a file: keeps its tabs and newlines on a terminal. */
export const textBytes = (text: string, base64: string | undefined): Buffer =>
  base64 === undefined || process.stdout.isTTY ? Buffer.from(text) : Buffer.from(base64, 'base64')

export const line = (...parts: (Buffer | string)[]): Buffer =>
  Buffer.concat([...parts, '\n'].map((part) => Buffer.from(part as string)))

export function reportMore({ note }: Output, shown: string): number {
  note(`sandlot: the list is incomplete: only the first ${shown} are shown.`)
  return exitCodes.more
}

/** Returns an entry's path to print, or its name if the entry has no path, as in a list of one folder. */
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

/** Returns a function that formats an entry like `ls -l`, with columns wide enough for all entries. */
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
  return ['s', 's', 't']
    .map((special, index) => {
      const three = bits >> (6 - 3 * index)
      const runs = three & 1 ? 'x' : '-'
      const set = three & 1 ? special : special.toUpperCase()
      const last = (bits >> (11 - index)) & 1 ? set : runs
      return `${three & 4 ? 'r' : '-'}${three & 2 ? 'w' : '-'}${last}`
    })
    .join('')
}

/** Rethrows an error. If the error means that the file already exists, adds a hint about --overwrite. */
export function offerToOverwrite(error: unknown): never {
  if (!(error instanceof CliError) || error.code !== 'file_exists') throw error
  throw error.with({ hint: '--overwrite replaces it.' })
}
