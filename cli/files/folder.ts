/** Whole folders between this machine and a session, as `cp -r` copies them. */
import { mkdirSync, realpathSync } from 'node:fs'
import { basename, join, posix } from 'node:path'
import { CliError } from '../core/errors.ts'
import { startTransfer } from '../core/progress.ts'
import { print } from '../exec/print.ts'
import { pack, unpackInto } from './archive.ts'
import { isFolder, type RemotePath } from './download.ts'
import { home, packThere, unpackThere } from './tar.ts'
import { kindOf } from './there.ts'

export interface CopiedFolder {
  target: string
  bytes: number
  /** What could not be copied, each with why. */
  leftOut: string[]
}

/** Copies a folder of this machine: into the target if that is a folder, else in its place. */
export async function sendFolder(folder: string, to: RemotePath): Promise<CopiedFolder> {
  const kind = await kindOf(to)
  if (kind === 'file') throw inTheWay(to.path)
  const name = nameOf(folder)
  const joins = kind === 'folder' && name !== undefined
  const target = posix.resolve(home, to.path, joins ? name : '')
  const leftOut: string[] = []
  let broken: { error: unknown } | undefined
  using progress = to.output.progress(folder)
  const transfer = startTransfer(progress, folder)
  async function* counted() {
    try {
      // The mode of a folder that is there already stays.
      const root = joins || kind === 'missing'
      for await (const chunk of pack(realpathSync(folder), { prefix: target.slice(1), root, leftOut })) {
        transfer.add(chunk)
        yield chunk
      }
    } catch (error) {
      broken = { error }
    }
  }
  const sent = await unpackThere(to, counted()).catch((error: unknown) => ({ error }))
  // What tar says of an archive that broke off helps nobody.
  if (broken !== undefined) throw notCopied(folder, broken.error)
  if (sent) throw sent.error
  return { target, bytes: transfer.bytes, leftOut }
}

export async function fetchFolder(from: RemotePath, local: string): Promise<CopiedFolder> {
  const name = nameOf(from.path)
  const target = isFolder(local) && name !== undefined ? join(local, name) : local
  const unpacking = unpackInto(makeFolder(target))
  using progress = from.output.progress(from.path)
  const transfer = startTransfer(progress, from.path)
  await packThere(from, async (bytes) => {
    transfer.add(bytes)
    await unpacking.write(bytes).catch((error) => Promise.reject(notCopied(from.path, error)))
  })
  const leftOut = await unpacking.end().catch((error) => Promise.reject(notCopied(from.path, error)))
  return { target, bytes: transfer.bytes, leftOut }
}

export async function printFolder(from: RemotePath): Promise<void> {
  if (process.stdout.isTTY)
    throw new CliError('usage', `${from.path} is a folder, and its archive is nothing for a terminal.`)
  await packThere(from, (bytes) => print('stdout', bytes))
}

/** Undefined where not the folder itself is meant, but what is in it. */
function nameOf(folder: string): string | undefined {
  const name = basename(folder)
  return ['', '.', '..'].includes(name) ? undefined : name
}

function makeFolder(path: string): string {
  try {
    mkdirSync(path, { recursive: true })
    return realpathSync(path)
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'EEXIST' ? inTheWay(path) : notCopied(path, error)
  }
}

const inTheWay = (path: string) =>
  new CliError('failed', `${path} is a file, and a folder cannot be copied over it.`)

const notCopied = (path: string, error: unknown) =>
  new CliError('failed', `Not all of ${path} was copied: ${(error as Error).message}`)
