import { Readable } from 'node:stream'
import type { ExecOutcome } from '../../shared/contract/exec.ts'
import { addStory, CliError } from '../core/errors.ts'
import { Input } from '../exec/input.ts'
import { createRemote } from '../exec/remote.ts'
import { runStreaming } from '../exec/stream.ts'
import type { RemotePath } from './download.ts'
import type { Skipped } from './skipped.ts'
import { cleanUpCommand, copyExits, packCommand, unpackCommand } from './tar-commands.ts'
import type { UnpackOptions } from './unpack.ts'

export const home = '/workspace'
/** Maximum number of characters kept from a command's stderr. */
const keptLength = 64 * 1024

/** Uploads an archive and unpacks it at a path in the sandbox. */
export async function uploadArchive(
  place: RemotePath,
  archive: AsyncIterable<Buffer>,
  { setsRoot, skipped }: UnpackOptions,
): Promise<void> {
  const temporary = `.sandlot-${crypto.randomUUID()}`
  const command = unpackCommand(place.path, temporary, setsRoot)
  const input = new Input(Readable.from(archive))
  const { ended, stderr } = await runCommand(place, command, { input })
  // A killed script leaves its temporary folder.
  if (ended.status !== 'exited') {
    const command = cleanUpCommand(place.path, temporary)
    await createRemote(place.api, place.id)
      .run({ command })
      .catch(() => {})
  }
  if (ended.exit_code === copyExits.partial) {
    for (const line of linesOf(stderr)) skipped.addLine(line.replaceAll(`/${temporary}/root`, ''))
  } else assertSuccess(ended, stderr)
}

/** Downloads a folder as a tar archive. `write` resolves when it can receive the next chunk. */
export async function downloadArchive(
  place: RemotePath,
  write: (bytes: Buffer) => Promise<void>,
  skipped: Skipped,
): Promise<void> {
  let taken = 0
  const { ended, stderr } = await runCommand(place, packCommand(place.path), {
    write: async (bytes) => {
      taken += bytes.length
      await write(bytes)
    },
  })
  const named = linesOf(stderr)
  // tar names files that it cannot read, and continues.
  const isPartial = ended.status === 'exited' && [1, 2].includes(ended.exit_code!) && taken > 0
  if (!isPartial || named.length === 0) assertSuccess(ended, stderr)
  if (taken < ended.stdout_bytes) {
    throw new CliError(
      'network',
      'The connection was interrupted for too long, so the archive is incomplete. Try again.',
    )
  }
  for (const line of named) skipped.addLine(line)
}

async function runCommand(
  { api, id, output }: RemotePath,
  command: string[],
  { input, write }: { input?: Input; write?: (bytes: Buffer) => Promise<void> },
) {
  let stderr = ''
  const ended = await runStreaming({
    remote: createRemote(api, id),
    // File contents must not be redacted.
    request: { command, reveal: true },
    input,
    write: async (stream, bytes) => {
      if (stream === 'stderr') stderr = `${stderr}${bytes}`.slice(0, keptLength)
      else await write?.(bytes)
    },
    note: output.note,
  }).catch(explainRefusal)
  return { ended, stderr }
}

/** Returns the lines that tar printed to stderr, except for its final summary. */
const linesOf = (stderr: string): string[] =>
  stderr
    .split('\n')
    .map((line) => line.replace(/^tar: /, ''))
    .filter((line) => line !== '' && !/Exiting with failure status|[Ee]rror exit delayed/.test(line))

function explainRefusal(error: unknown): never {
  if (!(error instanceof CliError) || error.code !== 'command_not_allowed') throw error
  throw addStory(
    error,
    'Copying a folder requires sh and tar in the sandbox.',
    'Copy the files one by one instead, which requires no command in the sandbox.',
  )
}

function assertSuccess({ status, exit_code, signal, reason }: ExecOutcome, stderr: string): void {
  if (status === 'exited' && exit_code === 0) return
  if (exit_code === 126 || exit_code === 127 || /\btar: (command )?not found/.test(stderr)) {
    throw new CliError('failed', 'The sandbox has no tar, which is required to copy folders.', {
      hint: 'Copy files one by one, or create the session with an image that has tar.',
    })
  }
  if (signal === 'INT' || exit_code === copyExits.interrupted)
    throw new CliError('interrupted', 'Interrupted.')
  const why = stderr.trim().slice(0, 4096) || reason || `it ended with ${exit_code ?? signal ?? status}`
  throw new CliError('failed', `The folder was not copied: ${why}`)
}
