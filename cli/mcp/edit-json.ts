/**
 * Puts one server into a JSON file, or takes it out, and leaves every other byte as it is: comments,
 * order, indentation, trailing commas. jsonc-parser only reads: its editing reformats lines nearby.
 */
import { isDeepStrictEqual } from 'node:util'
import { createScanner, getNodeValue, type Node, type ParseError, parseTree } from 'jsonc-parser'
import type { ServerEntry } from './targets.ts'

export interface EntryPath {
  section: string
  name: string
}

/** A file that cannot be edited, in words that name the place. */
export class Unreadable extends Error {
  override name = 'Unreadable'
}

/**
 * @param entry undefined takes it out
 * @param own members of the entry that are ours; other members are kept
 * @throws {Unreadable} when it does not parse, or does not have the shape it should
 */
export function editJson(
  before: string,
  { section, name }: EntryPath,
  entry: ServerEntry | undefined,
  own: string[],
): string {
  const bom = before.startsWith('\ufeff') ? '\ufeff' : ''
  const text = before.slice(bom.length)
  const root = read(text)
  const after = root
    ? edit(text, root)
    : entry === undefined
      ? text
      : fresh(text, { [section]: { [name]: entry } })
  return bom + after

  function edit(text: string, root: Node): string {
    const servers = memberOf(root, section, 'the file')
    if (!servers) return entry === undefined ? text : insert(text, root, section, { [name]: entry })
    const found = memberOf(servers, name, section)
    if (!found) return entry === undefined ? text : insert(text, servers, name, entry)
    if (entry === undefined) return withoutEmpty(remove(text, servers, name))
    if (found.type !== 'object') return replace(text, found, entry)
    return updateMembers(text, found, entry)
  }

  /** Takes the section out as well, if nothing is left in it, not even a comment. */
  function withoutEmpty(text: string): string {
    const root = read(text)!
    const { offset, length } = memberOf(root, section, 'the file')!
    return /^\{\s*\}$/.test(text.slice(offset, offset + length)) ? remove(text, root, section) : text
  }

  /** Changes one member after the other, because each moves the offsets of what follows. */
  function updateMembers(text: string, found: Node, entry: ServerEntry): string {
    const stale = own.filter((key) => !(key in entry) && keysOf(found).includes(key))
    const cleared = stale.reduce((so, key) => remove(so, again(so), key), text)
    return Object.entries(entry).reduce((so, [key, value]) => {
      const member = memberOf(again(so), key, name)
      if (!member) return insert(so, again(so), key, value)
      return isDeepStrictEqual(getNodeValue(member), value) ? so : replace(so, member, value)
    }, cleared)
  }

  function again(text: string): Node {
    return memberOf(memberOf(read(text)!, section, 'the file')!, name, section)!
  }
}

/** The entry that is there, undefined when there is none. @throws {Unreadable} */
export function readJsonEntry(before: string, { section, name }: EntryPath): unknown {
  const root = read(before.replace(/^\ufeff/, ''))
  const servers = root && memberOf(root, section, 'the file')
  const found = servers && memberOf(servers, name, section)
  return found && getNodeValue(found)
}

/** @returns undefined for a file without a value */
function read(text: string): Node | undefined {
  const errors: ParseError[] = []
  const root = parseTree(text, errors, { allowTrailingComma: true, allowEmptyContent: true })
  const [error] = errors
  if (error) throw new Unreadable(`it is not valid JSON (line ${lineAt(text, error.offset)})`)
  if (root && root.type !== 'object') throw new Unreadable('it does not hold an object')
  return root
}

function memberOf(object: Node, key: string, where: string): Node | undefined {
  if (object.type !== 'object') throw new Unreadable(`${JSON.stringify(where)} is not an object`)
  const found = (object.children ?? []).filter(({ children }) => children![0]!.value === key)
  if (found.length > 1) throw new Unreadable(`${JSON.stringify(key)} is in it twice`)
  const [member] = found
  return member && member.children![1]
}

const keysOf = (object: Node): string[] => (object.children ?? []).map(({ children }) => children![0]!.value)

const lineAt = (text: string, offset: number): number => text.slice(0, offset).split('\n').length

const fresh = (text: string, value: unknown): string => {
  const { eol, unit } = styleOf(text)
  const before = text.trim() === '' ? '' : `${text.trimEnd()}${eol}`
  return `${before}${print(value, unit, '', eol)}${eol}`
}

/** A new member behind the last one, and behind the comments that follow that. */
function insert(text: string, object: Node, key: string, value: unknown): string {
  const style = styleOf(text)
  const { eol, unit } = style
  const last = object.children?.at(-1)
  const close = object.offset + object.length - 1
  const { end, comma } = behind(text, last ? last.offset + last.length : object.offset + 1, close)
  const outer = indentAt(text, object.offset)
  const inner = last && startsItsLine(text, last.offset) ? indentAt(text, last.offset) : outer + unit
  const member = `${eol}${inner}${JSON.stringify(key)}: ${print(value, unit, inner, eol)}`
  const needsComma = last !== undefined && comma === undefined
  const lastEnd = last ? last.offset + last.length : end
  const rest = text.slice(end)
  return [
    text.slice(0, lastEnd),
    needsComma ? ',' : '',
    text.slice(lastEnd, end),
    member,
    comma === undefined ? '' : ',',
    /^[ \t]*\r?\n/.test(rest) ? '' : `${eol}${outer}`,
    rest,
  ].join('')
}

/** Takes a member out, with its line where nothing else is on that. */
function remove(text: string, object: Node, key: string): string {
  const members = object.children!
  const index = members.findIndex(({ children }) => children![0]!.value === key)
  const member = members[index]!
  const close = object.offset + object.length - 1
  const memberEnd = member.offset + member.length
  const { comma } = behind(text, memberEnd, members[index + 1]?.offset ?? close)
  const end = comma === undefined ? memberEnd : comma + 1
  const isAlone = startsItsLine(text, member.offset) && /^[ \t]*\r?\n/.test(text.slice(end))
  const lineStart = isAlone ? text.lastIndexOf('\n', member.offset) : -1
  const start = lineStart < 0 ? member.offset : text[lineStart - 1] === '\r' ? lineStart - 1 : lineStart
  const before = members[index - 1]
  if (comma !== undefined || !before) return text.slice(0, start) + text.slice(end)
  // It was the last member, without a trailing comma: then the one before must have none either.
  const dangling = behind(text, before.offset + before.length, member.offset).comma!
  return text.slice(0, dangling) + text.slice(dangling + 1, start) + text.slice(end)
}

function replace(text: string, node: Node, value: unknown): string {
  const { eol, unit } = styleOf(text)
  const printed = print(value, unit, indentAt(text, node.offset), eol)
  return text.slice(0, node.offset) + printed + text.slice(node.offset + node.length)
}

/** Where the comma and the comments behind an offset end. */
function behind(text: string, from: number, to: number): { end: number; comma: number | undefined } {
  const scanner = createScanner(text, false)
  scanner.setPosition(from)
  let [end, comma]: [number, number | undefined] = [from, undefined]
  for (scanner.scan(); scanner.getTokenLength() > 0 && scanner.getTokenOffset() < to; scanner.scan()) {
    const start = scanner.getTokenOffset()
    const token = text.slice(start, start + scanner.getTokenLength())
    if (token === ',') comma = start
    if (token.trim() !== '') end = start + token.length
  }
  return { end, comma }
}

/** Line ends and one step of indentation, as the file has them. */
function styleOf(text: string): { eol: string; unit: string } {
  const [, unit = '  '] = /^([ \t]+)["}\]{[]/m.exec(text) ?? []
  return { eol: text.includes('\r\n') ? '\r\n' : '\n', unit: unit.startsWith('\t') ? '\t' : unit }
}

const lineStartOf = (text: string, offset: number): number => text.lastIndexOf('\n', offset - 1) + 1

const indentAt = (text: string, offset: number): string =>
  /^[ \t]*/.exec(text.slice(lineStartOf(text, offset), offset))![0]

const startsItsLine = (text: string, offset: number): boolean =>
  text.slice(lineStartOf(text, offset), offset).trim() === '' && text.lastIndexOf('\n', offset - 1) >= 0

const print = (value: unknown, unit: string, indent: string, eol: string): string =>
  JSON.stringify(value, null, unit).replaceAll('\n', `${eol}${indent}`)
