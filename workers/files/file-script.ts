/**
 * File operations are small POSIX scripts that run in the sandbox like any command, so every image with a shell will
 * do. Failures come back as exit statuses, or in C-locale messages. Paths go in as bytes, and lists come out between
 * NULs or unguessable marks, so no name can break them.
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
/** Milliseconds for a script whose input or output is streamed: no sandbox lives longer. */
export const streamMs = 24 * 60 * 60 * 1000
/** Bytes of error messages that a script may print. */
const littleBytes = 64 * 1024

export const exits = {
  notFound: 40,
  isDirectory: 41,
  permissionDenied: 42,
  notRegular: 43,
  exists: 44,
  cutShort: 45,
  changed: 46,
  tooLarge: 47,
  notDirectory: 48,
  badPattern: 49,
  notWritable: 50,
  busy: 51,
  notNew: 52,
} as const

/**
 * Shell functions for the start of a script. They end it with the status of what they find. A command of the client may
 * make or remove the file at any time, so no status follows from two checks that it may have changed between.
 */
export const probes = `
missing() {
  case $(ls -d "$1" 2>&1) in *': Permission denied') exit ${exits.permissionDenied};; esac
  exit ${exits.notFound}
}
sorted() {
  # A sort that fails for lack of memory or disk must not look like an empty list.
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

const problemOfExit: Partial<Record<number, [ErrorCode, string]>> = {
  [exits.notFound]: ['file_not_found', 'There is no file at this path.'],
  [exits.isDirectory]: ['is_directory', 'The path is a directory.'],
  [exits.permissionDenied]: ['permission_denied', 'The sandbox may not read this path.'],
  [exits.notWritable]: [
    'permission_denied',
    'The sandbox may not write this file. `chmod u+w` lets it, if the file is its own.',
  ],
  [exits.notRegular]: ['invalid_request', 'The path is a device, a pipe or a socket, not a file.'],
  [exits.exists]: ['file_exists', 'The file exists already. Send overwrite: true to replace it.'],
  [exits.cutShort]: ['unavailable', 'The content did not arrive whole; nothing was written. Try again.'],
  [exits.changed]: ['precondition_failed', 'The file has changed since you read it; nothing was written.'],
  [exits.notNew]: [
    'precondition_failed',
    'The file exists, and the condition was that it does not; nothing was written.',
  ],
  [exits.tooLarge]: [
    'invalid_request',
    `The file has more than the ${limits.editBytes / 2 ** 20} MiB that an edit takes. Read it from files/raw, change it, and write it back there.`,
  ],
  [exits.busy]: [
    'unavailable',
    'Other writes in this sandbox, or a lock on /workspace, took too long; nothing was written. Try again.',
  ],
  [exits.notDirectory]: ['file_not_found', 'The path is no directory.'],
}

const problemOfWords: [RegExp, ErrorCode, string][] = [
  [
    /Read-only file system/i,
    'read_only',
    'This part of the sandbox is read-only. Write below /workspace or /tmp.',
  ],
  [
    /File name too long/i,
    'invalid_request',
    'A name in the path has more than 255 bytes, or the whole path more than 4,095.',
  ],
  // The folder was found or made just before: it takes no new names. Shells word this in their own ways.
  [
    /(create|\.sandlot-).*(No such file|nonexistent)|Invalid argument|\/proc\/.*Input\/output error/i,
    'permission_denied',
    'Nothing can be written here, such as below /proc.',
  ],
  // A command of the client made or removed it after the script's check.
  [/Is a directory/i, 'is_directory', 'The path is a directory.'],
  [/No such file/i, 'file_not_found', 'There is no file at this path.'],
  // As musl and glibc word it.
  [
    /I\/O error|Input\/output error/i,
    'permission_denied',
    'The kernel does not let this file be read, such as /proc/self/mem.',
  ],
  [/No space left|Disk quota exceeded/i, 'disk_full', "The sandbox's disk is full; nothing was written."],
  [/Text file busy/i, 'permission_denied', 'The file is a program that runs. Try again when it has ended.'],
  [/Permission denied|Operation not permitted/i, 'permission_denied', 'The sandbox may not do this.'],
  [
    /Not a directory|File exists/i,
    'file_exists',
    'A part of the path is a file, where a directory is needed.',
  ],
]

/** The exit status of a process that a signal ended is this plus the signal's number. */
const killed = 128

export interface FileScript {
  text: string
  args: (string | Path)[]
  stdin?: CommandIo['stdin']
  /** Takes the script's output as it arrives, but none after the script has ended. Must not throw. */
  onStdout?: CommandIo['onStdout']
  /** Bytes that it may print; a script that prints more is ended. By default nearly none. */
  maxBytes?: number
  /** Aborted once enough was printed. That ends the script, and neither this end nor too much output is a failure then. */
  enough?: AbortSignal
  /** Milliseconds. With `enough`, a time-out is no failure either. */
  timeoutMs?: number
}

/**
 * @returns whether it ran to completion, or was cut by `enough`, its time-out or its output's limit
 * @throws {Problem} for every way in which it failed
 */
export async function runFileScript(
  worker: SandboxContext,
  call: { sandboxId: string; accountId: string },
  signal: AbortSignal,
  script: FileScript,
): Promise<'whole' | 'cut'> {
  const { sandbox, leftMs } = await enter(worker, call)
  const stderr = new BoundedOutput(littleBytes)
  const printed = boundPrinted(littleBytes + (script.maxBytes ?? 0))
  const stops = [signal, printed.tooMuch, ...(script.enough ? [script.enough] : [])]
  const command = {
    argv: ['/bin/sh', '-c', script.text, 'sh', ...script.args],
    // The workspace may be closed; all paths are absolute.
    cwd: '/',
    // Switches off quotes by `stat`, and makes times UTC.
    env: { LC_ALL: 'C', QUOTING_STYLE: 'literal', TZ: 'UTC0' },
    // Its shell then stays until all output was read: Kubernetes drops output that is on its way when a process ends.
    noStdin: script.stdin === undefined,
  }
  const io = {
    stdin: script.stdin,
    onStdout: printed.within(script.onStdout ?? (() => {})),
    onStderr: printed.within((chunk) => stderr.push(chunk)),
  }
  const end = await runInside(worker, sandbox, command, io, {
    timeoutMs: Math.min(script.timeoutMs ?? timeoutMs, leftMs),
    signal: AbortSignal.any(stops),
  })
  printed.close()
  if (script.enough?.aborted) return 'cut'
  if (printed.tooMuch.aborted) {
    if (script.enough) return 'cut'
    throw new Problem('invalid_request', 'The tools of this image print more than they were asked for.')
  }
  if (script.enough && end.kind === 'timed_out') return 'cut'
  if (end.kind === 'exited' && end.code === 0) return 'whole'
  if (end.kind === 'lost') {
    worker.log.warn({ sandbox_id: call.sandboxId, reason: end.why }, 'work on a file was lost')
  }
  if (end.kind !== 'exited')
    throw unavailable('The connection to the sandbox was lost. Look at the file before you try again.')
  throw problemOf(end.code, stderr.toString())
}

/** Counts a script's output, and passes it on up to the limit. */
function boundPrinted(maxBytes: number) {
  const tooMuch = new AbortController()
  let left = maxBytes
  let isOver = false
  return {
    tooMuch: tooMuch.signal,
    close: () => {
      isOver = true
    },
    within:
      (take: CommandIo['onStdout']): CommandIo['onStdout'] =>
      (chunk) => {
        left -= chunk.length
        if (left < 0) tooMuch.abort()
        if (!isOver && left >= 0) return take(chunk)
      },
  }
}

export function problemOf(status: number, words: string): Problem {
  if (status === exits.badPattern) {
    const message = words.trim().replace(/^grep: /, '') || 'is no regular expression'
    return new Problem('invalid_request', `The pattern is not valid: ${message}.`, {
      members: { errors: [{ path: 'pattern', message }] },
    })
  }
  const known = problemOfExit[status] ?? problemOfWords.find(([meant]) => meant.test(words))?.slice(1)
  if (known) return new Problem(...(known as [ErrorCode, string]))
  const resource = usedUpBy(words)
  if (resource) return exhausted(resource)
  // A command in the sandbox, the end of the sandbox or the OOM killer killed it.
  if (status > killed) {
    return unavailable('The sandbox ended this before it was done. Look at the file before you try again.')
  }
  return new Problem('internal_error', `The file script ended with status ${status}.`)
}
