/** Packs a local folder as a tar archive. Skips and reports unreadable entries. */
import { constants, lstatSync, readdirSync, readlinkSync, type Stats } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import type { Skipped } from './skipped.ts'
import { encodeHeader, endOfArchive, paddingOf } from './tar-header.ts'

const chunkBytes = 256 * 1024

interface Context {
  skipped: Skipped
  /** Modes to set after unpacking, as `MODE\0PATH\0` for each folder that denies its owner a permission. */
  modes: Buffer[]
}

const rootName = 'root'

/** Yields a tar archive in the format expected by the script in tar-commands.ts. */
export async function* pack(folder: string, skipped: Skipped): AsyncGenerator<Buffer> {
  const context: Context = { skipped, modes: [] }
  yield* packEntry(Buffer.from(folder), Buffer.from(rootName), context)
  const modes = Buffer.concat(context.modes)
  yield encodeHeader({ name: Buffer.from('modes'), type: 'file', mode: 0o600, mtime: 0, size: modes.length })
  yield modes
  yield paddingOf(modes.length)
  yield endOfArchive
}

async function* packEntry(path: Buffer, name: Buffer, context: Context): AsyncGenerator<Buffer> {
  const { skipped } = context
  const shown = name.toString().slice(rootName.length + 1) || '.'
  try {
    const stats = lstatSync(path)
    if (stats.isDirectory()) yield* packFolder(path, name, stats, context)
    else if (stats.isSymbolicLink()) {
      const link = readlinkSync(path, { encoding: 'buffer' })
      yield encodeHeader({ name, type: 'symlink', ...metadataOf(stats), link })
    } else if (stats.isFile()) yield* packFile(path, name, (reason) => skipped.add(shown, reason))
    else skipped.add(shown, `is ${kindOf(stats)}`)
  } catch (error) {
    skipped.addError(shown, error)
  }
}

async function* packFolder(path: Buffer, name: Buffer, stats: Stats, context: Context) {
  const names = readdirSync(path, { encoding: 'buffer' })
  const { mode, mtime } = metadataOf(stats)
  const header = encodeHeader({ name: join(name, ''), type: 'directory', mode: mode | 0o700, mtime })
  yield header
  for (const each of names) yield* packEntry(join(path, each), join(name, each), context)
  // Repeated, because unpacking the entries changes the folder's modification time.
  yield header
  if ((mode & 0o700) === 0o700) return
  context.modes.push(Buffer.from(`${mode.toString(8)}\0.`), name.subarray(rootName.length), Buffer.alloc(1))
}

async function* packFile(path: Buffer, name: Buffer, skip: (reason: string) => void) {
  // The path may have become a link or a pipe since lstat.
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const stats = await file.stat()
    if (!stats.isFile()) return skip(`is ${kindOf(stats)}`)
    const { size } = stats
    yield encodeHeader({ name, type: 'file', ...metadataOf(stats), size })
    yield* readExactly(file, size, skip)
    yield paddingOf(size)
  } finally {
    await file.close()
  }
}

/** Yields the `size` bytes that the tar header announced, with zeros for bytes that cannot be read. */
async function* readExactly(file: FileHandle, size: number, skip: (reason: string) => void) {
  if (size === 0) return
  const options = { end: size - 1, highWaterMark: chunkBytes, autoClose: false }
  let left = size
  try {
    for await (const chunk of file.createReadStream(options) as AsyncIterable<Buffer>) {
      left -= chunk.length
      yield chunk
    }
    if (left > 0) skip('shrank while it was read; the copy contains zeros instead of the missing bytes')
  } catch (error) {
    const { message } = error as Error
    skip(`could not be read completely; the copy contains zeros instead of the missing bytes: ${message}`)
  }
  for (; left > 0; left -= chunkBytes) yield Buffer.alloc(Math.min(left, chunkBytes))
}

const metadataOf = ({ mode, mtimeMs }: Stats) => ({ mode: mode & 0o7777, mtime: mtimeMs / 1000 })

const join = (folder: Buffer, name: Buffer | string): Buffer =>
  Buffer.concat([folder, Buffer.from('/'), Buffer.from(name)])

function kindOf(stats: Stats): string {
  if (stats.isFIFO()) return 'a pipe'
  return stats.isSocket() ? 'a socket' : 'a device'
}
