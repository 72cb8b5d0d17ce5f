import { posix } from 'node:path'
import type { FileEntry } from '../../shared/contract/files.ts'

export interface Folder {
  path: string
  /** undefined until loaded */
  entries: FileEntry[] | undefined
  isCut: boolean
  /** Key of the selected row; the first row if it is missing. */
  selected: string | undefined
}

export interface Row {
  /** Unique, also among names that are not UTF-8. */
  key: string
  path: string
  entry: FileEntry
}

export const newFolder = (path: string, selected?: string): Folder => ({
  path,
  entries: undefined,
  isCut: false,
  selected,
})

/** Sorts folders first. */
export const rowsOf = ({ path, entries = [] }: Folder): Row[] =>
  entries
    .toSorted((a, b) => Number(b.type === 'directory') - Number(a.type === 'directory'))
    .map((entry) => ({ entry, key: entry.name_base64 ?? entry.name, path: posix.join(path, entry.name) }))
