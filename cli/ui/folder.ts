import { isUtf8 } from 'node:buffer'
import type { FileEntry } from '../../shared/contract/files.ts'

export interface SandboxPath {
  /** Shown, and sent unless `base64` is set. */
  path: string
  base64?: string
}

export interface Folder {
  location: SandboxPath
  /** undefined until loaded */
  entries: FileEntry[] | undefined
  isCut: boolean
  /** Key of the selected row; the first row if it is missing. */
  selected: string | undefined
}

export interface Row {
  key: string
  location: SandboxPath
  entry: FileEntry
}

export const newFolder = (location: SandboxPath, selected?: string): Folder => ({
  location,
  entries: undefined,
  isCut: false,
  selected,
})

export const keyOf = ({ path, base64 }: SandboxPath): string => base64 ?? path

export function childOf(parent: SandboxPath, { name, name_base64 }: FileEntry): SandboxPath {
  const path = `${parent.path === '/' ? '' : parent.path}/${name}`
  if (parent.base64 === undefined && name_base64 === undefined) return { path }
  const bytes = [
    bytesOf(parent),
    Buffer.from('/'),
    name_base64 === undefined ? Buffer.from(name) : Buffer.from(name_base64, 'base64'),
  ]
  return { path, base64: Buffer.concat(bytes).toString('base64') }
}

export function parentOf(location: SandboxPath): SandboxPath {
  const bytes = bytesOf(location)
  const above = bytes.subarray(0, Math.max(1, bytes.lastIndexOf('/')))
  return { path: above.toString(), ...(isUtf8(above) ? {} : { base64: above.toString('base64') }) }
}

export const queryOf = ({ path, base64 }: SandboxPath) =>
  base64 === undefined ? { path } : { path_base64: base64 }

/** Sorts folders first. */
export const rowsOf = ({ location, entries = [] }: Folder): Row[] =>
  entries
    .toSorted((a, b) => Number(b.type === 'directory') - Number(a.type === 'directory'))
    .map((entry) => ({ entry, location: childOf(location, entry) }))
    .map((row) => ({ ...row, key: keyOf(row.location) }))

const bytesOf = ({ path, base64 }: SandboxPath): Buffer =>
  base64 === undefined ? Buffer.from(path) : Buffer.from(base64, 'base64')
