/**
 * Files are worked on by small POSIX scripts that run in the sandbox like any command, so that every
 * image with a shell will do. What went wrong comes back as an exit status or in C-locale words.
 */
import type { ErrorCode } from '../../shared/contract/errors.ts'
import { Problem, unavailable } from '../../shared/problem.ts'
import type { WorkerContext } from '../context.ts'
import { BoundedOutput } from '../shell/output.ts'
import type { Path } from '../shell/script.ts'
import { enter, runInside } from './inside.ts'

const timeoutMs = 60_000

/** Exit statuses by which the scripts tell what they found. */
export const exits = {
  notFound: 40,
  isDirectory: 41,
  permissionDenied: 42,
  notRegular: 43,
  exists: 44,
  cutShort: 45,
} as const

const problemOfExit: Partial<Record<number, [ErrorCode, string]>> = {
  [exits.notFound]: ['file_not_found', 'There is no file at this path.'],
  [exits.isDirectory]: ['is_directory', 'The path is a directory.'],
  [exits.permissionDenied]: ['permission_denied', 'The sandbox may not read this path.'],
  [exits.notRegular]: ['invalid_request', 'The path is a device, a pipe or a socket, not a file.'],
  [exits.exists]: ['file_exists', 'The file exists already. Send overwrite: true to replace it.'],
  [exits.cutShort]: ['unavailable', 'The content did not arrive whole; nothing was written. Try again.'],
}

const problemOfWords: [RegExp, ErrorCode, string][] = [
  [
    /Read-only file system/i,
    'read_only',
    'This part of the sandbox is read-only. Write below /workspace or /tmp.',
  ],
  [/No space left|Disk quota exceeded/i, 'no_space', "The sandbox's disk is full; nothing was written."],
  [/Permission denied|Operation not permitted/i, 'permission_denied', 'The sandbox may not do this.'],
  [
    /Not a directory|File exists/i,
    'file_exists',
    'A part of the path is a file, where a directory is needed.',
  ],
]

/**
 * @param args become $1, $2, … of the script
 * @param outputLimit bytes of stdout that are kept; no script prints more
 * @throws {Problem} for every way in which it did not do what it should
 */
export async function runFileScript(
  worker: WorkerContext,
  call: { sandboxId: string; accountId: string },
  script: { text: string; args: (string | Path)[]; stdin?: Buffer; outputLimit: number },
  signal: AbortSignal,
): Promise<Buffer> {
  const { sandbox, leftMs } = await enter(worker, call)
  const stdout: Buffer[] = []
  let room = script.outputLimit
  const stderr = new BoundedOutput(64 * 1024)
  const end = await runInside(
    worker,
    sandbox,
    { argv: ['/bin/sh', '-c', script.text, 'sh', ...script.args], env: { LC_ALL: 'C' } },
    {
      stdin: script.stdin,
      onStdout(chunk) {
        stdout.push(chunk.subarray(0, room))
        room -= Math.min(room, chunk.length)
      },
      onStderr: (chunk) => stderr.push(chunk),
    },
    { timeoutMs: Math.min(timeoutMs, leftMs), signal },
  )
  if (end.kind === 'exited' && end.code === 0) return Buffer.concat(stdout)
  if (end.kind !== 'exited')
    throw unavailable('The connection to the sandbox was lost. Look at the file before you try again.')
  const known =
    problemOfExit[end.code] ?? problemOfWords.find(([words]) => words.test(stderr.toString()))?.slice(1)
  if (known) throw new Problem(...(known as [ErrorCode, string]))
  throw new Problem('internal_error', `The file script ended with status ${end.code}.`)
}
