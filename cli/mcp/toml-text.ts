/** Changes the lines of one server in a TOML file. All other lines stay, byte for byte. */
import { isDeepStrictEqual } from 'node:util'
import { parseDocument } from '@decimalturn/toml-patch'
import { parse, stringify } from 'smol-toml'
import type { EntryPath } from './edit-json.ts'
import type { ServerEntry } from './targets.ts'

type Block = ReturnType<typeof parseDocument>['cst'][number]
type KeyValue = Extract<Block, { equals: number }>

/** A header, or a key with its value. Its comment may follow on the same line. */
interface Statement {
  isHeader: boolean
  /** From the top of the file. In an array of tables `[]` stands before it, so it is nobody's. */
  path: string[]
  start: number
  end: number
  value?: { start: number; end: number; items: Item[] }
}

/** Of a table in braces. */
interface Item {
  key: string[]
  start: number
  end: number
}

interface Change {
  start: number
  end: number
  text: string
}

/** Takes the server out: its tables, its lines, or its part of a table in braces. */
export function cut(text: string, { section, name }: EntryPath): string {
  const statements = statementsOf(text)
  const isOurs = ({ path }: Statement) => path[0] === section && path[1] === name
  const changes: Change[] = []
  for (const [at, one] of statements.entries()) {
    if (!isOurs(one)) continue
    const before = changes.at(-1)
    // Comments between two of its lines are its own too.
    if (before && isOurs(statements[at - 1]!)) before.end = lineEnd(text, one.end)
    else changes.push({ start: lineStart(text, one.start), end: lineEnd(text, one.end), text: '' })
  }
  const braces = statements.find(({ path, value }) => isDeepStrictEqual(path, [section]) && value)
  if (braces) changes.push(...cutItems(braces.value!, name))
  return withoutEmpty(
    apply(
      text,
      changes.map((each) => withBlankLines(text, each)),
    ),
    section,
  )
}

/**
 * Gives our members of the server's table the values of the entry.
 * @throws {Error} when it is no table
 */
export function change(
  text: string,
  { section, name }: EntryPath,
  entry: ServerEntry,
  own: string[],
): string {
  const statements = statementsOf(text)
  const header = statements.find(({ path, isHeader }) => isHeader && isDeepStrictEqual(path, [section, name]))
  if (!header) throw new Error('It is no table.')
  const members = statements.filter(
    ({ path, isHeader }) => !isHeader && path.length === 3 && path[0] === section && path[1] === name,
  )
  const ours = members.filter(({ path }) => own.includes(path[2]!))
  const changes = ours.flatMap(({ path: [, , key], start, end, value }): Change[] => {
    const [place, wanted] = [value!, entry[key!]]
    if (wanted === undefined) return [{ start: lineStart(text, start), end: lineEnd(text, end), text: '' }]
    const { is } = parse(`is = ${text.slice(place.start, place.end)}`)
    return isDeepStrictEqual(is, wanted) ? [] : [{ ...place, text: print(wanted) }]
  })
  const missing = Object.keys(entry).filter((key) => !ours.some(({ path }) => path[2] === key))
  if (missing.length === 0) return apply(text, changes)
  const last = ours.at(-1) ?? members.at(-1) ?? header
  const indent = text.slice(lineStart(text, last.start), last.start)
  const eol = text.includes('\r\n') ? '\r\n' : '\n'
  const at = lineEnd(text, last.end)
  const lines = missing.map((key) => `${indent}${key} = ${print(entry[key])}${eol}`).join('')
  // Behind the last line, which may have no end.
  return apply(text, [...changes, { start: at, end: at, text: text[at - 1] === '\n' ? lines : eol + lines }])
}

/** Without the others' spaces: between the braces, from one item to the next. */
function cutItems({ start, end, items }: NonNullable<Statement['value']>, name: string): Change[] {
  const kept = items.filter(({ key }) => key[0] !== name)
  if (kept.length === items.length) return []
  if (kept.length === 0) return [{ start, end, text: '{}' }]
  return items.flatMap((item, at) => {
    if (kept.includes(item)) return []
    const next = items[at + 1]
    if (next) return [{ start: item.start, end: next.start, text: '' }]
    return [{ start: kept.at(-1)!.end, end: item.end, text: '' }]
  })
}

/** Takes the section out as well, if nothing is left in it and no comment is at it. */
function withoutEmpty(text: string, section: string): string {
  const statements = statementsOf(text)
  const [only, another] = statements.filter(({ path }) => path[0] === section)
  if (!only || another || only.path.length > 1 || (only.value && only.value.items.length > 0)) return text
  const next = statements[statements.indexOf(only) + 1]
  const [start, end] = [lineStart(text, only.start), lineEnd(text, only.end)]
  const isFree = !text.slice(only.end, only.isHeader ? (next?.start ?? text.length) : end).includes('#')
  return isFree ? apply(text, [withBlankLines(text, { start, end, text: '' })]) : text
}

/** Of the blank lines around whole lines that go, those before stay; at either end of the file none do. */
function withBlankLines(text: string, lines: Change): Change {
  const { start, end } = lines
  if (lines.text !== '' || !isLineStart(text, start) || !isLineStart(text, end)) return lines
  const [head, tail] = [text.slice(0, start), text.slice(end)]
  const behind = end + /^(?:[ \t]*\r?\n)*/.exec(tail)![0].length
  const before = /(?:^|\n)((?:[ \t]*\r?\n)*)$/.exec(head)?.[1]?.length ?? 0
  if (behind === text.length) return { start: start - before, end: behind, text: '' }
  return before > 0 || head === '' || head === '\ufeff' ? { start, end: behind, text: '' } : lines
}

const isLineStart = (text: string, at: number): boolean =>
  at === 0 || at === text.length || text[at - 1] === '\n' || (at === 1 && text[0] === '\ufeff')

const apply = (text: string, changes: Change[]): string =>
  changes
    .toSorted((one, other) => other.start - one.start)
    .reduce((so, { start, end, text }) => so.slice(0, start) + text + so.slice(end), text)

const print = (value: unknown): string =>
  stringify({ is: value })
    .replace(/^is = /, '')
    .trimEnd()

const lineStart = (text: string, at: number): number => {
  const start = text.lastIndexOf('\n', at - 1) + 1
  return start === 0 && text.startsWith('\ufeff') ? 1 : start
}

const lineEnd = (text: string, at: number): number => {
  const end = text.indexOf('\n', at)
  return end < 0 ? text.length : end + 1
}

function statementsOf(text: string): Statement[] {
  const starts = [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)]
  const bom = text.startsWith('\ufeff') ? 1 : 0
  const place = ({ loc: { start, end } }: Pick<Block, 'loc'>) => {
    // Columns are counted without the mark at the start of the file.
    const [from, to] = [start, end].map(
      ({ line, column }) => starts[line - 1]! + column + (line === 1 ? bom : 0),
    )
    return { start: from!, end: to! }
  }
  const assignment = (above: string[], { key, value, ...node }: KeyValue): Statement => {
    const items = value.type === 'InlineTable' ? value.items : []
    const named = items.map(({ item }) => ({ key: item.key.value, ...place(item) }))
    return {
      isHeader: false,
      path: [...above, ...key.value],
      ...place(node),
      value: { ...place(value), items: named },
    }
  }
  const isAssignment = (block: Block): block is KeyValue => 'equals' in block
  return parseDocument(text).cst.flatMap((block): Statement[] => {
    if (isAssignment(block)) return [assignment([], block)]
    if (!('items' in block)) return []
    const { key, items } = block
    const path = [...(block.type === 'TableArray' ? ['[]'] : []), ...key.item.value]
    const header = { isHeader: true, path, ...place(key) }
    return [header, ...items.filter(isAssignment).map((item) => assignment(path, item))]
  })
}
