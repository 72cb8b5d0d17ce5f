import { randomBytes } from 'node:crypto'
import { basename } from 'node:path'
import type { FileEntry } from '../../shared/contract/files.ts'
import { readName } from './location.ts'

export interface FoundEntry {
  /** The path as printed by `find`, which begins with `./`, or the path from the request. */
  path: Buffer
  entry: FileEntry
}

/**
 * Returns a format for `stat`, and a function that splits each record printed in this format into five
 * fields: `MODE_HEX SIZE SECONDS UID GID DATE TIME ZONE`, the owner, the group, the path, and the path with a
 * symlink's target. `more` contains format sequences to append to the first field.
 */
export function entryFormat(more = '') {
  const sentinel = randomBytes(16).toString('hex')
  const names = ['%U', '%G', '%n', '%N'].map((field) => sentinel + field).join('')
  const end = `${sentinel}${sentinel}`
  return {
    format: `%f %s %Y %u %g %y${more}${names}${end}`,
    /** Marks the end of a record, before its newline. This marker cannot occur in a file name. */
    end,
    delimiter: Buffer.from(`${end}\n`),
    split: (record: Buffer) => split(record, Buffer.from(sentinel)),
  }
}

const types: Record<number, FileEntry['type']> = {
  1: 'fifo',
  2: 'character',
  4: 'directory',
  6: 'block',
  8: 'file',
  10: 'symlink',
  12: 'socket',
}

/** Parses the fields of a record. Returns undefined if they do not match {@link entryFormat}. */
export function readEntry([facts, owner, group, path, link]: Buffer[]): FoundEntry | undefined {
  if (!facts || !owner || !group || !path || !link) return undefined
  const [hex = '', size, seconds, uid, gid, date, time] = facts.toString('latin1').split(' ')
  const name = Buffer.from(basename(path.toString('latin1')), 'latin1')
  const mode = Number.parseInt(hex, 16)
  const type = types[mode >> 12]
  if (!type || !/^\d+$/.test(size ?? '') || !/^-?\d+$/.test(seconds ?? '')) return undefined
  if (!isId(uid) || !isId(gid)) return undefined
  const { text, base64 } = readName(name)
  const bytes = type === 'symlink' ? targetOf(link, path) : undefined
  const target = bytes && readName(bytes)
  const entry = {
    name: text,
    ...(base64 === undefined ? {} : { name_base64: base64 }),
    type,
    size: Number(size),
    mode: (mode & 0o7777).toString(8).padStart(3, '0'),
    uid: Number(uid),
    gid: Number(gid),
    owner: nameOfId(owner, uid),
    group: nameOfId(group, gid),
    modified_at: readTime(Number(seconds), `${date}T${time}`),
    ...(target === undefined ? {} : { target: target.text }),
    ...(target?.base64 === undefined ? {} : { target_base64: target.base64 }),
  }
  return { path, entry }
}

function split(record: Buffer, delimiter: Buffer): Buffer[] {
  const parts: Buffer[] = []
  for (let from = 0; ; ) {
    const at = record.indexOf(delimiter, from)
    parts.push(record.subarray(from, at === -1 ? record.length : at))
    if (at === -1) return parts
    from = at + delimiter.length
  }
}

/** Whether the text can be a Linux user or group ID, which has at most 32 bits. */
const isId = (text: string | undefined): text is string => /^\d{1,10}$/.test(text ?? '')

/**
 * Returns the name that `stat` printed for an ID, or null if `stat` printed a placeholder because the ID has
 * no name.
 */
function nameOfId(printed: Buffer, id: string): string | null {
  const { text } = readName(printed)
  return text === 'UNKNOWN' || text === id ? null : text
}

/** Parses a symlink's target from `NAME -> TARGET`. BusyBox `stat` quotes both names. */
function targetOf(shown: Buffer, path: Buffer): Buffer | undefined {
  const plain = Buffer.concat([path, Buffer.from(' -> ')])
  if (shown.subarray(0, plain.length).equals(plain)) return shown.subarray(plain.length)
  const quoted = Buffer.concat([Buffer.from("'"), path, Buffer.from("' -> '")])
  if (shown.subarray(0, quoted.length).equals(quoted)) return shown.subarray(quoted.length, -1)
  return undefined
}

/**
 * Range to which file timestamps are clamped, in seconds since 1970, because ISO 8601 supports only
 * four-digit years.
 */
const years = {
  first: Date.parse('0000-01-01T00:00:00Z') / 1000,
  last: Date.parse('9999-12-31T23:59:59Z') / 1000,
}

function readTime(seconds: number, dateTime: string): string {
  const [whole = '', fraction = ''] = dateTime.split('.')
  const precise = new Date(`${whole}.${fraction.padEnd(3, '0').slice(0, 3)}Z`)
  const isSame = Math.floor(precise.getTime() / 1000) === seconds
  const clamped = Math.min(Math.max(seconds, years.first), years.last)
  return (isSame && clamped === seconds ? precise : new Date(clamped * 1000)).toISOString()
}
