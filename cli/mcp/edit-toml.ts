import { isDeepStrictEqual } from 'node:util'
import { parse, patch, stringify } from '@decimalturn/toml-patch'
import { type EntryPath, Unreadable } from './settings-file.ts'
import type { ServerEntry } from './targets.ts'

type Table = Record<string, unknown>

/**
 * Changes an MCP server's entry in TOML settings. Keeps comments, other entries and the user's own fields.
 * @param entry undefined to remove the server
 * @throws {Unreadable} if the text cannot be parsed, or if the result would not have the intended settings
 */
export function editEntry(
  text: string,
  path: EntryPath,
  entry: ServerEntry | undefined,
  managed: string[],
): string {
  const values = read(text)
  const { [path.name]: found, ...others } = serversOf(values, path)
  const kept = Object.entries((found ?? {}) as Table).filter(([key]) => !managed.includes(key))
  const servers = entry ? { ...others, [path.name]: { ...entry, ...Object.fromEntries(kept) } } : others
  const wanted = { ...values, [path.section]: servers }
  const isDone = (after: string) =>
    isDeepStrictEqual(plain({ [path.section]: {}, ...read(after) }), plain(wanted))
  if (isDone(text)) return text
  // Without editTables, patch() would move or remove comments above the next table.
  for (const start of [editTables(text, path, entry, found as Table | undefined), text]) {
    try {
      const after = isDone(start) ? start : patch(start, wanted)
      if (isDone(after)) return after
    } catch {
      // The matched lines were not the server's table.
    }
  }
  throw new Unreadable(`[${path.section}] has a format that cannot be edited safely`)
}

/** Returns an MCP server's entry in TOML settings. @throws {Unreadable} if the text cannot be parsed */
export const readEntry = (text: string, path: EntryPath): unknown => serversOf(read(text), path)[path.name]

/** Adds or removes the server's table, or adds missing fields. `patch` then changes the existing fields. */
function editTables(text: string, { section, name }: EntryPath, entry?: ServerEntry, found?: Table): string {
  const eol = text.includes('\r\n') ? '\r\n' : '\n'
  const print = (values: ServerEntry) => stringify(values).trimEnd().replaceAll(/\r?\n/g, eol) + eol
  if (found === undefined) {
    const gap = text === '' ? '' : text.endsWith('\n') ? eol : eol + eol
    return entry ? `${text}${gap}[${section}.${name}]${eol}${print(entry)}` : text
  }
  const blank = '(?:[ \\t\\r]*\\n)*'
  const head = (rest: string) =>
    `(?<=^|\\n)${blank}[ \\t]*\\[[ \\t]*["']?${section}["']?[ \\t]*\\.[ \\t]*["']?${name}["']?[ \\t]*${rest}\\][^\\n]*(?:\\n|$)`
  if (entry === undefined) {
    // Trailing comments belong to the next table.
    const lines = '(?:(?:[ \\t\\r]*(?:#[^\\n]*)?\\n)*(?![ \\t\\r]*(?:[[#\\n]|$))[^\\n]+(?:\\n|$))*'
    return text.replace(new RegExp(`${head('(?:\\.[^\\]\\n]*)?')}${lines}`, 'g'), '')
  }
  const missing = Object.entries(entry).filter(([key]) => !Object.hasOwn(found, key))
  if (missing.length === 0) return text
  return text.replace(
    new RegExp(head('')),
    (line) => `${line}${line.endsWith('\n') ? '' : eol}${print(Object.fromEntries(missing))}`,
  )
}

function read(text: string): Table {
  try {
    return parse(text)
  } catch (error) {
    const { line } = error as { line?: number }
    throw new Unreadable(`it is not valid TOML${line === undefined ? '' : ` (line ${line})`}`)
  }
}

function serversOf(values: Table, { section }: EntryPath): Table {
  const servers = values[section] ?? {}
  if (typeof servers === 'object' && !Array.isArray(servers)) return servers as Table
  throw new Unreadable(`${section} is not a table`)
}

/** Converts dates and large integers to strings, so that values can be compared. */
const plain = (values: Table): unknown =>
  JSON.parse(JSON.stringify(values, (_, value) => (typeof value === 'bigint' ? String(value) : value)))
