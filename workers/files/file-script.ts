/**
 * Runs file operations as small POSIX shell scripts in the sandbox, so that they work in every image that has
 * a shell. Paths are passed as bytes, and lists are separated by NULs or unguessable sentinels, so file names
 * may contain any byte.
 */
import type { ErrorCode } from '../../shared/contract/errors.ts'
import { limits } from '../../shared/contract/limits.ts'
import { Problem, unavailable } from '../../shared/platform/problem.ts'
import { usedUpBy } from '../drivers/exhausted.ts'
import { enter, exhausted, runInside, type SandboxContext } from '../sandbox/enter.ts'
import { BoundedOutput } from '../shell/output.ts'
import type { Path } from '../shell/script.ts'
import type { CommandIo } from '../shell/slot.ts'

const timeoutMs = 60_000
/** Timeout for a script whose input or output is streamed: the maximum lifetime of a sandbox. */
export const streamMs = 24 * 60 * 60 * 1000
/** Maximum size of a script's error messages. */
const messageBytes = 64 * 1024

const ontoItself = 'A file cannot be moved onto itself, and a directory cannot be moved into itself.'
const mountPoint =
  'The root directory and mount points, such as /workspace and /tmp, cannot be moved or removed.'

const failures = {
  notFound: ['file_not_found', 'No file exists at this path.'],
  isDirectory: ['is_directory', 'The path is a directory.'],
  permissionDenied: ['permission_denied', "The sandbox's user does not have permission to read this path."],
  notWritable: [
    'permission_denied',
    "The sandbox's user does not have permission to write this file. If it owns the file, run `chmod u+w`.",
  ],
  notRegular: ['invalid_request', 'The path is a device, a pipe or a socket, not a file.'],
  exists: ['file_exists', 'The file already exists. Send overwrite: true to replace it.'],
  cutShort: ['unavailable', 'The content was not fully received; nothing was written. Try again.'],
  changed: [
    'precondition_failed',
    'The file has changed since you read it; nothing was written. Read the file again.',
  ],
  notNew: [
    'precondition_failed',
    'The file already exists, but the request requires a new file; nothing was written.',
  ],
  tooLarge: [
    'invalid_request',
    `The file exceeds the limit of ${limits.editBytes / 2 ** 20} MiB for edits. Use files/raw instead.`,
  ],
  busy: [
    'unavailable',
    'Another write in this sandbox holds the lock on /workspace; nothing was written. Try again.',
  ],
  directoryExists: [
    'file_exists',
    'The directory already exists. Send exist_ok: true to accept an existing directory.',
  ],
  fileInTheWay: ['file_exists', 'A file that is not a directory exists at this path.'],
  needsRecursive: [
    'is_directory',
    'The path is a directory. Send recursive: true to remove it and everything in it.',
  ],
  mountPoint: ['permission_denied', mountPoint],
  ontoItself: ['invalid_request', ontoItself],
  notDirectory: ['file_not_found', 'The path is not a directory.'],
} satisfies Record<string, [ErrorCode, string]>

type Exit = keyof typeof failures | 'badPattern'
const exitNames = ['badPattern', ...Object.keys(failures)]
const firstExit = 40

/** Exit statuses that the scripts use to report failures. */
export const exits = Object.fromEntries(exitNames.map((name, index) => [name, firstExit + index])) as Record<
  Exit,
  number
>

/**
 * Shell functions, most of which test a path and exit with one of {@link exits} if it is unsuitable. If a
 * client's command creates or removes the file between two tests, the status must be correct for the file's
 * state either before or after that change.
 */
export const probes = `
missing() {
  case $(ls -d "$1" 2>&1) in *': Permission denied') exit ${exits.permissionDenied};; esac
  exit ${exits.notFound}
}
sorted() {
  # A sort that runs out of memory or disk must not be taken for an empty list.
  sort -z || kill $$
}
must_be_no_device() {
  if [ -p "$1" ] || [ -S "$1" ] || [ -c "$1" ] || [ -b "$1" ]; then exit ${exits.notRegular}; fi
}
must_be_file() {
  if [ -d "$1" ]; then exit ${exits.isDirectory}; fi
  must_be_no_device "$1"
  if [ ! -e "$1" ]; then missing "$1"; fi
  if [ -r "$1" ]; then return; fi
  if [ -e "$1" ]; then exit ${exits.permissionDenied}; fi
  missing "$1"
}
`

const problemOfMessage: [RegExp, ErrorCode, string][] = [
  [
    /Read-only file system/i,
    'read_only',
    'This path is on a read-only file system. Write to a path under /workspace or /tmp.',
  ],
  [
    /File name too long/i,
    'invalid_request',
    'A name in the path exceeds 255 bytes, or the path exceeds 4,095 bytes.',
  ],
  // `mv` in busybox prints only the kernel's message.
  [
    /are the same file|subdirectory of itself|can't rename .*Invalid argument/i,
    'invalid_request',
    ontoItself,
  ],
  [/resource busy/i, 'permission_denied', mountPoint],
  [
    /Directory not empty/i,
    'unavailable',
    'Files were created in the directory during the operation. Try again.',
  ],
  // The directory exists, but does not allow new entries. The message depends on the shell.
  [
    /(create|\.sandlot-).*(No such file|nonexistent)|Invalid argument|\/proc\/.*Input\/output error/i,
    'permission_denied',
    'New files cannot be created in this directory. Write to a path under /workspace or /tmp.',
  ],
  // A client's command created or removed the file after the script's check.
  [/Is a directory/i, 'is_directory', 'The path is a directory.'],
  [/No such file/i, 'file_not_found', 'No file exists at this path.'],
  // The first message is musl's, the second glibc's.
  [
    /I\/O error|Input\/output error/i,
    'permission_denied',
    'The kernel does not allow reading this file. It may be a special file, such as /proc/self/mem.',
  ],
  [
    /^sort: .*No space left/im,
    'invalid_request',
    'The directory contains more names than can be sorted in the free space of /tmp. Use a smaller directory, or delete files in /tmp.',
  ],
  [
    /No space left|Disk quota exceeded/i,
    'disk_full',
    "The sandbox's disk is full; nothing was written. Delete files, then try again.",
  ],
  [
    /Text file busy/i,
    'permission_denied',
    'The file is a running program. Try again after the program has exited.',
  ],
  [
    /Permission denied|Operation not permitted/i,
    'permission_denied',
    "The sandbox's user does not have permission for this operation. Check the owner and mode of the path.",
  ],
  [/Not a directory|File exists/i, 'file_exists', 'A component of the path is a file, not a directory.'],
]

/** A shell reports exit status 128 + n for a process killed by signal n. */
const killed = 128

interface FileScript {
  text: string
  args: (string | Path)[]
  stdin?: CommandIo['stdin']
  /** Receives the script's output. Must not throw. */
  onStdout?: CommandIo['onStdout']
  /**
   * Maximum output in bytes; a script that prints more is killed. Error messages may use a further 64 KiB.
   */
  maxBytes?: number
  /**
   * Aborted by the caller when it needs no more output. If set, a script that is stopped, prints too much or
   * times out does not count as failed.
   */
  enough?: AbortSignal
  timeoutMs?: number
}

/**
 * Runs the script of a file operation in the sandbox.
 * @returns `whole` if the script ran to completion. With `enough`, also `timed_out`, or `cut` if the script
 *   was stopped or printed too much
 * @throws {Problem} for every failure
 */
export async function runFileScript(
  worker: SandboxContext,
  call: { sandboxId: string; accountId: string },
  signal: AbortSignal,
  script: FileScript,
): Promise<'whole' | 'cut' | 'timed_out'> {
  const { sandbox } = await enter(worker, call)
  const stderr = new BoundedOutput(messageBytes)
  const output = limitOutput(messageBytes + (script.maxBytes ?? 0))
  const stops = [signal, output.tooMuch, ...(script.enough ? [script.enough] : [])]
  const command = {
    argv: ['/bin/sh', '-c', script.text, 'sh', ...script.args],
    // The user may not be allowed to enter the workspace, and all paths are absolute.
    cwd: '/',
    // Disables quoting in the output of `stat`, and selects UTC.
    env: { LC_ALL: 'C', QUOTING_STYLE: 'literal', TZ: 'UTC0' },
    // Without stdin, the shell stays alive until all output has been read, because Kubernetes drops output in
    // transit when a process ends.
    noStdin: script.stdin === undefined,
  }
  const io = {
    stdin: script.stdin,
    onStdout: output.limit(script.onStdout ?? (() => {})),
    onStderr: output.limit((chunk) => stderr.push(chunk)),
  }
  const end = await runInside(worker, sandbox, command, io, {
    timeoutMs: script.timeoutMs ?? timeoutMs,
    signal: AbortSignal.any(stops),
  })
  output.close()
  if (script.enough?.aborted) return 'cut'
  if (output.tooMuch.aborted) {
    if (script.enough) return 'cut'
    throw new Problem(
      'invalid_request',
      "The image's tools printed more output than expected. Use an image with standard tools.",
    )
  }
  if (script.enough && end.kind === 'timed_out') return 'timed_out'
  if (end.kind === 'exited' && end.code === 0) return 'whole'
  if (end.kind === 'lost') {
    worker.log.warn(
      { sandbox_id: call.sandboxId, reason: end.why },
      'the exit status of a file script was lost',
    )
  }
  if (end.kind !== 'exited')
    throw unavailable('The connection to the sandbox was lost. Check the file before you try again.')
  throw problemOf(end.code, stderr.toBuffer().toString())
}

function limitOutput(maxBytes: number) {
  const tooMuch = new AbortController()
  let left = maxBytes
  let isOver = false
  return {
    tooMuch: tooMuch.signal,
    close: () => {
      isOver = true
    },
    limit:
      (take: CommandIo['onStdout']): CommandIo['onStdout'] =>
      (chunk) => {
        left -= chunk.length
        if (left < 0) tooMuch.abort()
        if (!isOver && left >= 0) return take(chunk)
      },
  }
}

export function problemOf(status: number, stderr: string): Problem {
  if (status === exits.badPattern) {
    const message = stderr.trim().replace(/^grep: /, '') || 'is not a regular expression'
    return new Problem('invalid_request', `The pattern is invalid: ${message}.`, {
      members: { errors: [{ path: 'pattern', message }] },
    })
  }
  const failure: [ErrorCode, string] | undefined =
    failures[exitNames[status - firstExit] as keyof typeof failures]
  if (failure) return new Problem(...failure)
  const [, code, detail] = problemOfMessage.find(([pattern]) => pattern.test(stderr)) ?? []
  if (code && detail) return new Problem(code, detail)
  const resource = usedUpBy(stderr)
  if (resource) return exhausted(resource)
  // The script was killed by a command in the sandbox, by the OOM killer, or because the sandbox ended.
  if (status > killed) {
    return unavailable('The file operation was killed in the sandbox. Check the file before you try again.')
  }
  return new Problem(
    'internal_error',
    `The internal script for this file operation exited with status ${status}.`,
  )
}
