import { posix } from 'node:path'
import type { FileEntry } from '../../shared/contract/files.ts'

export interface Folder {
  path: string
  /** Files in the folder. Undefined until loaded. */
  entries: FileEntry[] | undefined
  isCut: boolean
  /** Key of the selected row. If no row has this key, the first row is selected. */
  selected: string | undefined
}

export interface Row {
  /** Unique key of the row, even if the file name is not UTF-8. */
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

export const rowsOf = ({ path, entries = [] }: Folder): Row[] =>
  entries
    .toSorted((a, b) => Number(b.type === 'directory') - Number(a.type === 'directory'))
    .map((entry) => ({ entry, key: entry.name_base64 ?? entry.name, path: posix.join(path, entry.name) }))

export function selectedRow(folder: Folder): Row | undefined {
  const rows = rowsOf(folder)
  return rows.find(({ key }) => key === folder.selected) ?? rows[0]
}
