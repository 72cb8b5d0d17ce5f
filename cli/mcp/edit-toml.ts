/**
 * Puts one server into a TOML file, or takes it out. A new one is a table at the end of the file, so
 * that nothing before it changes. An existing one is changed in its place, and keeps its comments.
 */
import { isDeepStrictEqual } from 'node:util'
import { parse, stringify, type TomlTable } from 'smol-toml'
import { type EntryPath, Unreadable } from './edit-json.ts'
import type { ServerEntry } from './targets.ts'

/** @throws {Unreadable} when it does not parse, or cannot be changed without touching the rest */
export async function editToml(
  before: string,
  path: EntryPath,
  entry: ServerEntry | undefined,
  own: string[],
): Promise<string> {
  const values = read(before)
  const { [path.name]: found, ...others } = serversOf(values, path)
  if (found === undefined && entry === undefined) return before
  const kept = Object.entries((found ?? {}) as ServerEntry).filter(([key]) => !own.includes(key))
  const servers =
    entry === undefined ? others : { ...others, [path.name]: { ...entry, ...Object.fromEntries(kept) } }
  const wanted = { ...values, [path.section]: servers } as TomlTable
  if (isDeepStrictEqual(values, wanted)) return before
  const candidates: string[] = []
  if (found === undefined) candidates.push(append(before, path, entry!))
  else if (entry === undefined) candidates.push(cut(before, path))
  const { patch } = await import('@decimalturn/toml-patch')
  candidates.push(patch(before, wanted))
  const after = candidates.find((text) => says(text, wanted))
  if (after !== undefined) return after
  throw new Unreadable(`[${path.section}] is written in a way that cannot be changed safely`)
}

/** The entry that is there, undefined when there is none. @throws {Unreadable} */
export const readTomlEntry = (before: string, path: EntryPath): unknown =>
  serversOf(read(before), path)[path.name]

function read(text: string): TomlTable {
  try {
    return parse(text.replace(/^\ufeff/, ''))
  } catch (error) {
    const { line } = error as { line?: number }
    throw new Unreadable(`it is not valid TOML${line === undefined ? '' : ` (line ${line})`}`)
  }
}

function serversOf(values: TomlTable, { section }: EntryPath): TomlTable {
  const servers = values[section] ?? {}
  if (typeof servers === 'object' && !Array.isArray(servers)) return servers as TomlTable
  throw new Unreadable(`${section} is not a table`)
}

/** Our own, because toml-patch puts a new server in one line above the tables of the others. */
function append(before: string, { section, name }: EntryPath, entry: ServerEntry): string {
  const eol = eolOf(before)
  const table = stringify({ [section]: { [name]: entry } }).replaceAll('\n', eol)
  if (before.replace(/^\ufeff/, '') === '') return before + table
  return `${before}${before.endsWith('\n') ? '' : eol}${eol}${table}`
}

/**
 * Removes the server's tables. Our own, because toml-patch removes the comments above the next table too:
 * those and the blank lines there belong to that one.
 */
function cut(before: string, { section, name }: EntryPath): string {
  const head = new RegExp(`^\\s*\\[\\s*["']?${section}["']?\\s*\\.\\s*["']?${name}["']?\\s*[.\\]]`)
  const tables = before.split(/^(?=[ \t]*\[)/m)
  const isOurs = (at: number) => head.test(tables[at] ?? '')
  const kept = tables.map((table, at) => (isOurs(at) ? (isOurs(at + 1) ? '' : commentsBehind(table)) : table))
  if (!isOurs(tables.length - 1)) return kept.join('')
  // Removes the blank line before a server at the end of the file too.
  const texts = [kept.slice(0, -1).join(''), kept.at(-1)!].map((text) => text.trimEnd())
  return texts.map((text) => (text === '' ? '' : text + eolOf(before))).join('')
}

function commentsBehind(table: string): string {
  const lines = table.split('\n')
  return lines.slice(lines.findLastIndex((line) => !/^\s*(#.*)?$/.test(line)) + 1).join('\n')
}

const eolOf = (text: string): string => (text.includes('\r\n') ? '\r\n' : '\n')

function says(text: string, wanted: TomlTable): boolean {
  try {
    return isDeepStrictEqual(plain(read(text)), plain(wanted))
  } catch {
    return false
  }
}

/** Compares dates by their text, because equal dates are different objects. Ignores empty tables. */
const plain = (values: TomlTable): unknown =>
  JSON.parse(
    JSON.stringify(Object.fromEntries(Object.entries(values).filter(([, value]) => !isEmpty(value)))),
  )

const isEmpty = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length === 0
