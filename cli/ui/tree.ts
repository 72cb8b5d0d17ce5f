/** The folders of a session that were opened, as rows. */
import type { FileEntry } from '../../shared/contract/files.ts'

export interface SandboxPath {
  /** To be shown, and to be asked for unless it is not UTF-8. */
  path: string
  base64?: string
}

export interface Folder {
  location: SandboxPath
  isOpen: boolean
  /** undefined until the first answer */
  entries: FileEntry[] | undefined
  isCut: boolean
}

export interface Tree {
  root: SandboxPath
  folders: ReadonlyMap<string, Folder>
  /** The key of the row that is stood on; the first one when it is gone. */
  selected: string | undefined
}

export interface Row {
  key: string
  location: SandboxPath
  depth: number
  entry: FileEntry
  isOpen: boolean
  /** A folder whose entries have been asked for. */
  isLoading: boolean
}

export const keyOf = ({ path, base64 }: SandboxPath): string => base64 ?? path

export const newTree = (root = '/workspace'): Tree => ({
  root: { path: root },
  folders: new Map(),
  selected: undefined,
})

export function childOf(parent: SandboxPath, { name, name_base64 }: FileEntry): SandboxPath {
  const path = `${parent.path === '/' ? '' : parent.path}/${name}`
  if (parent.base64 === undefined && name_base64 === undefined) return { path }
  const bytes = [
    parent.base64 === undefined ? Buffer.from(parent.path) : Buffer.from(parent.base64, 'base64'),
    Buffer.from('/'),
    name_base64 === undefined ? Buffer.from(name) : Buffer.from(name_base64, 'base64'),
  ]
  return { path, base64: Buffer.concat(bytes).toString('base64') }
}

export const queryOf = ({ path, base64 }: SandboxPath) =>
  base64 === undefined ? { path } : { path_base64: base64 }

export function putFolder(tree: Tree, location: SandboxPath, change: Partial<Folder>): Tree {
  const key = keyOf(location)
  const before = tree.folders.get(key) ?? { location, isOpen: false, entries: undefined, isCut: false }
  return { ...tree, folders: new Map(tree.folders).set(key, { ...before, ...change }) }
}

/** What is visible, top to bottom: folders first, as people expect of a tree. */
export function rowsOf(tree: Tree): Row[] {
  const rows: Row[] = []
  const add = (location: SandboxPath, depth: number) => {
    for (const entry of sorted(tree.folders.get(keyOf(location))?.entries ?? [])) {
      const child = childOf(location, entry)
      const folder = tree.folders.get(keyOf(child))
      const isOpen = folder?.isOpen ?? false
      rows.push({
        key: keyOf(child),
        location: child,
        depth,
        entry,
        isOpen,
        isLoading: isOpen && !folder?.entries,
      })
      if (isOpen) add(child, depth + 1)
    }
  }
  add(tree.root, 0)
  return rows
}

const sorted = (entries: FileEntry[]) =>
  entries.toSorted((a, b) => Number(b.type === 'directory') - Number(a.type === 'directory'))

export const parentOf = ({ path }: SandboxPath): SandboxPath => ({
  path: path.replace(/\/[^/]*$/, '') || '/',
})
