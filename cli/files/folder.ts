import { mkdirSync, readdirSync, realpathSync } from 'node:fs'
import { basename, join, posix } from 'node:path'
import { CliError } from '../core/errors.ts'
import { startTransfer } from '../core/progress.ts'
import { print } from '../exec/print.ts'
import type { RemotePath } from './download.ts'
import { isFolder } from './local-file.ts'
import { pack } from './pack.ts'
import { kindOf } from './remote-stat.ts'
import { Skipped } from './skipped.ts'
import { downloadArchive, home, uploadArchive } from './tar.ts'
import { unpackInto } from './unpack.ts'

interface CopiedFolder {
  target: string
  bytes: number
  skipped: Skipped
}

export async function sendFolder(folder: string, to: RemotePath): Promise<CopiedFolder> {
  const source = readableFolder(folder)
  const kind = await kindOf(to)
  const name = nameOf(folder)
  const joins = kind === 'folder' && name !== undefined
  const path = posix.resolve(home, to.path, joins ? name : '')
  const targetKind = joins ? await kindOf({ ...to, path }) : kind
  if (targetKind === 'file') throw inTheWay(path)
  const skipped = new Skipped()
  using progress = to.output.progress(folder)
  const transfer = startTransfer(progress, folder)
  async function* counted() {
    for await (const chunk of pack(source, skipped)) {
      transfer.add(chunk)
      yield chunk
    }
  }
  // With `DIR/.` the target keeps its mode.
  await uploadArchive({ ...to, path }, counted(), { setsRoot: joins || kind === 'missing', skipped })
  return { target: path, bytes: transfer.bytes, skipped }
}

export async function fetchFolder(from: RemotePath, local: string): Promise<CopiedFolder> {
  const name = nameOf(from.path)
  const joins = isFolder(local) && name !== undefined
  const target = joins ? join(local, name) : local
  const setsRoot = joins || !isFolder(local)
  const skipped = new Skipped()
  const unpacking = unpackInto(makeFolder(target), { setsRoot, skipped })
  const fail = (error: unknown) => Promise.reject(notCopied(from.path, error))
  // The first signal is forwarded to the command in the sandbox. A second signal exits the client.
  process.once('exit', unpacking.abort)
  using progress = from.output.progress(from.path)
  const transfer = startTransfer(progress, from.path)
  const write = async (bytes: Buffer) => {
    transfer.add(bytes)
    await unpacking.write(bytes).catch(fail)
  }
  try {
    await downloadArchive(from, write, skipped)
    await unpacking.end().catch(fail)
  } finally {
    unpacking.abort()
    process.off('exit', unpacking.abort)
  }
  return { target, bytes: transfer.bytes, skipped }
}

export async function printFolder(from: RemotePath): Promise<Skipped> {
  if (process.stdout.isTTY)
    throw new CliError(
      'usage',
      `${from.path} is a folder and would be printed as a tar archive. Redirect stdout to a file or pipe.`,
    )
  const skipped = new Skipped()
  await downloadArchive(from, (bytes) => print('stdout', bytes), skipped)
  return skipped
}

/** Returns the folder's name, or undefined for `DIR/.`, which means the contents of the folder. */
function nameOf(folder: string): string | undefined {
  const name = basename(folder)
  return ['', '.', '..'].includes(name) ? undefined : name
}

function readableFolder(folder: string): string {
  try {
    readdirSync(folder)
    return realpathSync(folder)
  } catch (error) {
    throw notCopied(folder, error)
  }
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
  new CliError('failed', `${path} is a file, which a folder cannot replace. Choose another path.`)

const notCopied = (path: string, error: unknown) =>
  new CliError('failed', `${path} was not copied: ${(error as Error).message}`)
