/** `--json=field,field`: some fields of the result alone. */
import { CliError } from './errors.ts'

/** What a command's result looks like. */
export interface JsonShape {
  /** Of the object, or of each in its list. */
  fields: readonly string[]
  /** The member that holds the list: `data`, where it has one. */
  list?: string | undefined
}

/** @throws {CliError} `usage` for `--json=` with nothing behind it */
export function readFields(text: string): string[] {
  const fields = text
    .split(',')
    .map((field) => field.trim())
    .filter((field) => field !== '')
  if (fields.length > 0) return fields
  throw new CliError('usage', '--json= names no field.', { hint: 'Such as --json=id,state.' })
}

/** Before anything is done. @throws {CliError} `usage` */
export function mustBeKnown(asked: string[], known: readonly string[]): void {
  const unknown = asked.filter((field) => !known.includes(field))
  if (unknown.length === 0) return
  throw new CliError('usage', `This command has no field ${unknown.join(', ')}.`, {
    hint: `It has ${known.join(', ')}.`,
    details: { fields: known },
  })
}

/**
 * Keeps those fields of each object of the list, and what stands beside the list; without one, of the object.
 * @throws {CliError} `usage`, where the command did not say what its fields are and has none of that name
 */
export function pick(value: unknown, asked: string[], shape: JsonShape | undefined): unknown {
  const object = isObject(value) ? value : {}
  const list = shape?.list ?? 'data'
  const rows = object[list]
  const picked = (from: unknown) => {
    const member = isObject(from) ? from : {}
    if (shape === undefined) mustBeKnown(asked, Object.keys(member))
    return Object.fromEntries(asked.map((field) => [field, member[field] ?? null]))
  }
  return Array.isArray(rows) ? { ...object, [list]: rows.map(picked) } : picked(object)
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null
