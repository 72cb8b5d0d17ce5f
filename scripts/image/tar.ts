import { Header } from 'tar'

export interface Entry {
  path: string
  data?: Buffer
  link?: string
  /** File mode. The default is 0755 for folders and 0644 for files. */
  mode?: number
}

const block = 512
const kindOf = ({ data, link }: Entry) => (link !== undefined ? 'SymbolicLink' : data ? 'File' : 'Directory')
export const modeOf = ({ data, mode }: Entry) => mode ?? (data ? 0o644 : 0o755)

/** Returns the entries together with all of their parent folders. Each folder precedes its contents. */
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

/**
 * Returns a tar archive whose entries all belong to root.
 * @throws {Error} if a path is too long for the format
 */
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
    if (header.encode()) throw new Error(`The path ${entry.path} is too long for a tar archive.`)
    return [header.block!, entry.data ?? Buffer.alloc(0), Buffer.alloc((block - (size % block)) % block)]
  })
  return Buffer.concat([...parts, Buffer.alloc(2 * block)])
}
