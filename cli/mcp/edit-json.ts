import { isDeepStrictEqual } from 'node:util'
import { applyEdits, getNodeValue, modify, type Node, type ParseError, parseTree, visit } from 'jsonc-parser'
import { type EntryPath, Unreadable } from './settings-file.ts'
import type { ServerEntry } from './targets.ts'

/**
 * Changes an MCP server's entry in JSON settings. Keeps comments, other entries and the user's own fields.
 * @param entry undefined to remove the server
 * @throws {Unreadable} if the text cannot be parsed or has an unexpected structure
 */
export function editEntry(
  text: string,
  { section, name }: EntryPath,
  entry: ServerEntry | undefined,
  managed: string[],
): string {
  const place = [section, name]
  if (entry === undefined || findNode(text, place)?.type !== 'object') return set(text, place, entry)
  return managed.reduce((before, key) => set(before, [...place, key], entry[key]), text)
}

/** Returns an MCP server's entry in JSON settings. @throws {Unreadable} if the text cannot be parsed */
export const readEntry = (text: string, { section, name }: EntryPath): unknown =>
  readValue(findNode(text, [section, name]))

function set(text: string, path: string[], value: unknown): string {
  const found = findNode(text, path)
  if (isDeepStrictEqual(readValue(found), value)) return text
  if (value === undefined) return removeMember(text, found!.parent!)
  const indent = /^(\t+| +)"/m.exec(text)?.[1] ?? '  '
  const formattingOptions = { insertSpaces: !indent.startsWith('\t'), tabSize: indent.length }
  const after = applyEdits(text, modify(text, path, value, { formattingOptions }))
  return text === '' ? `${after}\n` : after
}

/** Removes a member and its comma from an object. jsonc-parser's `modify` also removes nearby comments. */
function removeMember(text: string, { offset, length, parent }: Node): string {
  const end = offset + length
  const object = parent!
  const commas: number[] = []
  visit(text, { onSeparator: (letter, at) => letter === ',' && commas.push(at) })
  const next = commas.find((at) => at >= end && at < object.offset + object.length)
  const comma = next ?? commas.findLast((at) => at > object.offset && at < offset)
  const isWholeLine =
    /\n[ \t]*$/.test(text.slice(0, offset)) && /^[ \t]*\r?\n/.test(text.slice(1 + (next ?? end - 1)))
  const start = isWholeLine ? text.slice(0, offset).search(/\r?\n[ \t]*$/) : offset
  const removed = [{ offset: start, length: end - start, content: '' }]
  if (comma !== undefined) removed.push({ offset: comma, length: 1, content: '' })
  return applyEdits(text, removed)
}

function findNode(text: string, path: string[]): Node | undefined {
  const errors: ParseError[] = []
  const root = parseTree(text, errors, { allowTrailingComma: true, allowEmptyContent: true })
  const [error] = errors
  if (error) {
    const line = text.slice(0, error.offset).split('\n').length
    throw new Unreadable(`it is not valid JSON (line ${line})`)
  }
  return path.reduce<Node | undefined>((node, key) => node && memberOf(node, key), root)
}

function memberOf(object: Node, key: string): Node | undefined {
  if (object.type !== 'object') throw new Unreadable(`the parent of ${JSON.stringify(key)} is not an object`)
  const [found, another] = object.children!.filter(({ children }) => children![0]!.value === key)
  if (another) throw new Unreadable(`it contains ${JSON.stringify(key)} twice`)
  return found?.children?.[1]
}

/** Returns a node's value. Adds the prototypes that getNodeValue omits and isDeepStrictEqual compares. */
const readValue = (node: Node | undefined): unknown => node && JSON.parse(JSON.stringify(getNodeValue(node)))
