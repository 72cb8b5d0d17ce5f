import { existsSync } from 'node:fs'
import { basename, join, posix } from 'node:path'
import { addSessionOption, defineCommand, type Invocation } from '../core/command.ts'
import { addHint, CliError, exitCodes } from '../core/errors.ts'
import { printFile, type RemotePath, saveFile } from '../files/download.ts'
import { isFolder } from '../files/local-file.ts'
import { kindOf } from '../files/remote-stat.ts'
import type { Skipped } from '../files/skipped.ts'
import { sendFile } from '../files/upload.ts'

interface Copied {
  /** Path of the file that was written, or undefined for stdout. */
  target?: string
  bytes: number
  skipped?: Skipped
}

export const define = defineCommand({
  declare: (command) =>
    addSessionOption(
      command,
      'the session of :PATH, by id or name; by default the current one, or the only active one',
    )
      .argument('<source>', 'a local path, or SESSION:PATH')
      .argument('<target>', 'a local path, or SESSION:PATH; exactly one of the two paths is in a session')
      .option('-r, --recursive', 'accepted and ignored: folders are always copied'),
  notes: `
SESSION is an id or a name. Without it, :PATH refers to the default session. PATH is relative to /workspace, or
absolute. Write ./ before a local path whose first component contains a colon.

Copies like \`cp -rp\`: into the target if that is a folder, otherwise to the target path. DIR/. means all entries of
DIR. The local path - is stdin or stdout; a folder is written to stdout as a tar archive. Modes, times and links in a
folder are preserved, and so is the mode of a single file.

Each file is replaced only when its copy is complete, so an interrupted copy leaves no partial files. A target that is a
pipe or a device is written to directly. Pipes, sockets and devices in a folder, and entries that cannot be read or
written, are skipped and listed on stderr; the exit code is then 9.

Folders are copied with the sandbox's sh and tar. On this machine, nothing is written outside the target, and no link is
created that points outside it.`,
  examples: [
    'sandlot cp src builder:',
    'sandlot cp sbx_01kx…:build/report.pdf .',
    'sandlot cp :src/. backup',
    'sandlot cp :src - | tar t',
  ],
  fields: ['source', 'target', 'bytes'],
  handle: async (invocation) => {
    const [source = '', target = ''] = invocation.args
    const { target: final, bytes, skipped } = await copy(invocation, source, target)
    const { output, exitWith } = invocation
    if (final !== undefined) {
      output.result({ source, target: final, bytes }, `${final}\n`)
      output.aside(`${bytes} bytes copied.`)
    }
    if (skipped === undefined || skipped.count === 0) return
    const { lines, count } = skipped
    for (const line of lines) output.note(`sandlot: not copied: ${line}`)
    if (count > lines.length) output.note(`sandlot: not copied: ${count - lines.length} more`)
    exitWith(exitCodes.more)
  },
})

async function copy(invocation: Invocation<object>, source: string, target: string): Promise<Copied> {
  const [from, to] = [readPlace(source), readPlace(target)]
  if (from !== undefined && to === undefined) return await fetch(await open(invocation, from), target)
  if (from === undefined && to !== undefined) {
    const { target: path, ...rest } = await send(source, await open(invocation, to))
    return { target: `${to.session}:${path}`, ...rest }
  }
  const local = [source, target].find((path) => readPlace(path)?.session)
  throw new CliError('usage', 'One path must be local, and the other path must be in a session.', {
    hint:
      local === undefined
        ? 'Use SESSION:PATH for a path in a session, or :PATH for a path in the default session.'
        : localHint(local),
  })
}

/** A path in a session. An empty `session` means the default session. */
interface Place {
  session: string
  path: string
}

function readPlace(text: string): Place | undefined {
  const [, session, path] = /^([^/:]*):(.*)$/s.exec(text) ?? []
  return session === undefined ? undefined : { session, path: path || '.' }
}

const localHint = (path: string): string => `For the local file ${JSON.stringify(path)}, use ./${path}`

async function open({ api, output, session }: Invocation<object>, place: Place): Promise<RemotePath> {
  const id = await session(place.session || undefined).catch((error) => {
    const local = `${place.session}:${place.path}`
    throw error instanceof CliError && existsSync(local) ? addHint(error, localHint(local)) : error
  })
  return { api, id, path: place.path, output }
}

async function send(local: string, to: RemotePath): Promise<Copied> {
  if (local !== '-' && isFolder(local)) {
    const { sendFolder } = await import('../files/folder.ts')
    return await sendFolder(local, to)
  }
  const { path, size } = await sendFile({ ...to, path: await fileTarget(local, to) }, local)
  return { target: path, bytes: size }
}

async function fileTarget(local: string, to: RemotePath): Promise<string> {
  if (local === '-') return to.path
  const isIn = to.path.endsWith('/') || (await kindOf(to)) === 'folder'
  return isIn ? posix.join(to.path, basename(local)) : to.path
}

async function fetch(from: RemotePath, local: string): Promise<Copied> {
  try {
    if (local === '-') {
      await printFile(from)
      return { bytes: 0 }
    }
    const target = isFolder(local) ? join(local, basename(from.path)) : local
    return { target, bytes: (await saveFile(from, target)).size }
  } catch (error) {
    if (!(error instanceof CliError) || error.code !== 'is_directory') throw error
    const { fetchFolder, printFolder } = await import('../files/folder.ts')
    return local === '-' ? { bytes: 0, skipped: await printFolder(from) } : await fetchFolder(from, local)
  }
}
