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

function append(before: string, { section, name }: EntryPath, entry: ServerEntry): string {
  const eol = before.includes('\r\n') ? '\r\n' : '\n'
  const table = stringify({ [section]: { [name]: entry } })
    .replace(/\n$/, '')
    .replaceAll('\n', eol)
  if (before.replace(/^\ufeff/, '') === '') return `${before}${table}${eol}`
  const gap = before.endsWith('\n') ? eol : eol + eol
  return `${before}${gap}${table}${eol}`
}

/** Removes the server's tables. Comments and blank lines above the next table belong to that one. */
function cut(before: string, { section, name }: EntryPath): string {
  const isOurs = (line: string) => {
    const keys = /^\s*\[([^\]]+)\]/
      .exec(line)?.[1]
      ?.split('.')
      .map((key) => key.trim().replace(/^["']|["']$/g, ''))
    return keys?.[0] === section && keys[1] === name
  }
  const kept: string[] = []
  let pending: string[] | undefined
  for (const line of before.split('\n')) {
    const isHeader = /^\s*\[/.test(line)
    if (isHeader && isOurs(line)) pending = []
    else if (isHeader) {
      kept.push(...(pending ?? []))
      pending = undefined
    }
    if (pending === undefined) kept.push(line)
    else pending = /^\s*(#.*)?$/.test(line) ? [...pending, line] : []
  }
  if (pending === undefined) return kept.join('\n')
  // Removes the blank line before a server at the end of the file too.
  const text = [kept.join('\n').trimEnd(), pending.join('\n').trimEnd()]
    .filter((part) => part !== '')
    .join('\n')
  return text === '' ? '' : `${text}${before.includes('\r\n') ? '\r\n' : '\n'}`
}

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
