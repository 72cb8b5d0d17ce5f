/**
 * Puts one server into a TOML file, or takes it out, and leaves every other byte as it is. A new one is a table at
 * the end of the file. An existing one is changed in its place, and keeps its comments.
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
  const { cut, change } = await import('./toml-text.ts')
  const { patch } = await import('@decimalturn/toml-patch')
  const edit = () => {
    if (found === undefined) return append(before, path, entry!)
    return entry === undefined ? cut(before, path) : change(before, path, entry, own)
  }
  // What is not written as tables or lines of its own, toml-patch changes; it may move comments and spaces.
  for (const way of [edit, () => patch(before, wanted)]) {
    const after = attempt(way)
    if (after !== undefined && says(after, wanted)) return after
  }
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
  const eol = before.includes('\r\n') ? '\r\n' : '\n'
  const table = stringify({ [section]: { [name]: entry } }).replaceAll('\n', eol)
  if (before.replace(/^\ufeff/, '') === '') return before + table
  return `${before}${before.endsWith('\n') ? '' : eol}${eol}${table}`
}

function attempt<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}

const says = (text: string, wanted: TomlTable): boolean =>
  isDeepStrictEqual(
    attempt(() => plain(read(text))),
    plain(wanted),
  )

/** Compares dates by their text, because equal dates are different objects. Ignores empty tables. */
const plain = (values: TomlTable): unknown =>
  JSON.parse(
    JSON.stringify(Object.fromEntries(Object.entries(values).filter(([, value]) => !isEmpty(value)))),
  )

const isEmpty = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length === 0
