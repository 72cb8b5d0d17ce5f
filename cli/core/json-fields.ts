/** Parses `--json=FIELD,FIELD.PATH`, and selects those fields of a result. */
import { CliError } from './errors.ts'

export interface JsonShape {
  /** The fields of the result, or of each object in the result's list. */
  fields: readonly string[]
  /** Name of the result's list field. Default: `data`. */
  list?: string | undefined
}

/**
 * Parses a comma-separated list of paths.
 * @throws {CliError} `usage` if the list or a path segment is empty
 */
export function readFields(text: string): string[] {
  const fields = text
    .split(',')
    .map((field) => field.trim())
    .filter((field) => field !== '')
  const broken = fields.find((field) => field.split('.').includes(''))
  if (broken !== undefined) {
    throw new CliError('usage', `--json=${broken} is not a valid path.`, {
      hint: 'Example: --json=usage.limit',
    })
  }
  if (fields.length > 0) return fields
  throw new CliError('usage', '--json= lists no fields.', { hint: 'Example: --json=id,state' })
}

/** @throws {CliError} `usage` if a path starts with an unknown field */
export function assertFieldsExist(asked: string[], existing: readonly string[]): void {
  const unknown = asked.filter((path) => !existing.includes(path.split('.', 1)[0]!))
  if (unknown.length === 0) return
  throw new CliError('usage', `The result does not contain ${unknown.join(', ')}.`, {
    hint: `The fields of this command's result are ${existing.join(', ')}.`,
    details: { fields: existing },
  })
}

/**
 * Keeps only the selected paths of a result or, if the result contains a list, of each object in the list.
 * @throws {CliError} `usage` if the command declares no fields and the result lacks a selected field
 */
export function pick(value: unknown, asked: string[], shape: JsonShape | undefined): unknown {
  const object = isObject(value) ? value : {}
  const list = shape?.list ?? 'data'
  const rows = object[list]
  const wanted = treeOf(asked.map((path) => path.split('.')))
  const picked = (from: unknown) => {
    const member = isObject(from) ? from : {}
    if (shape === undefined) assertFieldsExist(asked, Object.keys(member))
    return prune(member, wanted)
  }
  return Array.isArray(rows) ? { ...object, [list]: rows.map(picked) } : picked(object)
}

/** Selected keys and their subkeys. An empty tree selects everything. */
type Tree = Map<string, Tree>

function treeOf(paths: string[][]): Tree {
  const firsts = new Set(paths.map(([first = '']) => first))
  return new Map(
    [...firsts].map((first) => {
      const below = paths.filter((path) => path[0] === first).map((path) => path.slice(1))
      return [first, below.some((path) => path.length === 0) ? new Map() : treeOf(below)]
    }),
  )
}

/** Returns a copy of a value with only the selected keys. Missing values become null. */
function prune(value: unknown, tree: Tree): unknown {
  if (tree.size === 0) return value ?? null
  if (Array.isArray(value)) return value.map((each) => prune(each, tree))
  const member = isObject(value) ? value : {}
  return Object.fromEntries(
    [...tree].map(([key, below]) => [key, prune(Object.hasOwn(member, key) ? member[key] : null, below)]),
  )
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null
