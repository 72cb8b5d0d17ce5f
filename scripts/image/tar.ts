/** Archives that are the same byte for byte whenever they are made of the same. */
import { Header } from 'tar'

export interface Entry {
  /** Without a leading slash. */
  path: string
  data?: Buffer
  /** Where a symbolic link leads. */
  link?: string
  /** 0755 for folders, 0644 for files unless told. */
  mode?: number
}

const block = 512
const kindOf = ({ data, link }: Entry) => (link !== undefined ? 'SymbolicLink' : data ? 'File' : 'Directory')
export const modeOf = ({ data, mode }: Entry) => mode ?? (data ? 0o644 : 0o755)

/** @returns what was given and the folders that it needs, each behind the one that it lies in */
export function withFolders(entries: readonly Entry[]): Entry[] {
  const all = new Map(entries.map((entry) => [entry.path, entry]))
  for (const { path } of entries) {
    const parts = path.split('/').slice(0, -1)
    for (const [index] of parts.entries()) {
      const folder = parts.slice(0, index + 1).join('/')
      if (!all.has(folder)) all.set(folder, { path: folder })
    }
  }
  return [...all.values()].sort((one, other) => (one.path < other.path ? -1 : 1))
}

/** Everything in it is root's and has one time. @throws {Error} for a name that is too long */
export function makeTar(entries: readonly Entry[], mtime: Date): Buffer {
  const parts = entries.flatMap((entry) => {
    const size = entry.data?.length ?? 0
    const kind = kindOf(entry)
    const header = new Header({
      path: kind === 'Directory' ? `${entry.path}/` : entry.path,
      type: kind,
      linkpath: entry.link ?? '',
      mode: modeOf(entry),
      ...{ uid: 0, gid: 0, size, mtime },
    })
    if (header.encode()) throw new Error(`${entry.path} does not fit into an archive.`)
    return [header.block!, entry.data ?? Buffer.alloc(0), Buffer.alloc((block - (size % block)) % block)]
  })
  return Buffer.concat([...parts, Buffer.alloc(2 * block)])
}
