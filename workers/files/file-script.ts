/**
 * Files are worked on by small POSIX scripts that run in the sandbox like any command, so that every
 * image with a shell will do. What went wrong comes back as an exit status or in C-locale words.
 */
import type { ErrorCode } from '../../shared/contract/errors.ts'
import { limits } from '../../shared/contract/limits.ts'
import { Problem, unavailable } from '../../shared/platform/problem.ts'
import type { WorkerContext } from '../context.ts'
import { GrowingBuffer } from '../drivers/growing-buffer.ts'
import { enter, runInside } from '../sandbox/enter.ts'
import { BoundedOutput } from '../shell/output.ts'
import type { Path } from '../shell/script.ts'
import type { CommandIo } from '../shell/slot.ts'

const timeoutMs = 60_000
/** For what a script prints beside what it is for: complaints. */
const littleBytes = 64 * 1024

/** Exit statuses by which the scripts tell what they found. */
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
} as const

/** For the start of a script: functions that leave it with the status of what they find. */
export const probes = `
missing() {
  case $(ls -d "$1" 2>&1) in *': Permission denied') exit ${exits.permissionDenied};; esac
  exit ${exits.notFound}
}
must_be_file() {
  if [ -d "$1" ]; then exit ${exits.isDirectory}; fi
  if [ ! -e "$1" ]; then missing "$1"; fi
  if [ ! -f "$1" ]; then exit ${exits.notRegular}; fi
  if [ ! -r "$1" ]; then exit ${exits.permissionDenied}; fi
}
`

const problemOfExit: Partial<Record<number, [ErrorCode, string]>> = {
  [exits.notFound]: ['file_not_found', 'There is no file at this path.'],
  [exits.isDirectory]: ['is_directory', 'The path is a directory.'],
  [exits.permissionDenied]: ['permission_denied', 'The sandbox may not read this path.'],
  [exits.notRegular]: ['invalid_request', 'The path is a device, a pipe or a socket, not a file.'],
  [exits.exists]: ['file_exists', 'The file exists already. Send overwrite: true to replace it.'],
  [exits.cutShort]: ['unavailable', 'The content did not arrive whole; nothing was written. Try again.'],
  [exits.changed]: ['file_changed', 'The file is not the one that was meant any more; nothing was written.'],
  [exits.tooLarge]: [
    'invalid_request',
    `The file has more than the ${limits.editBytes} bytes that an edit takes. files/raw takes any size.`,
  ],
  [exits.notDirectory]: ['file_not_found', 'The path is no directory.'],
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

export interface FileScript {
  text: string
  /** They become $1, $2, … */
  args: (string | Path)[]
  stdin?: CommandIo['stdin']
  /** Takes what the script prints, as it comes, but nothing once the script is over. Must not throw. */
  onStdout?: CommandIo['onStdout']
  /** What it prints at most: one that prints more is ended. Nearly nothing unless told. */
  mostBytes?: number
  /** Aborts when enough was printed: the script is ended, and that is no failure; nor is it then to print too much. */
  enough?: AbortSignal
  /** Milliseconds. With `enough`, running out of them is no failure either. */
  timeoutMs?: number
}

/**
 * @returns whether it came to its end, or was cut: because of `enough`, its time, or all that it printed
 * @throws {Problem} for every way in which it did not do what it should
 */
export async function runFileScript(
  worker: WorkerContext,
  call: { sandboxId: string; accountId: string },
  script: FileScript,
  signal: AbortSignal,
): Promise<'whole' | 'cut'> {
  const { sandbox, leftMs } = await enter(worker, call)
  const stderr = new BoundedOutput(littleBytes)
  const printed = boundPrinted(littleBytes + (script.mostBytes ?? 0))
  const stops = [signal, printed.tooMuch, ...(script.enough ? [script.enough] : [])]
  const end = await runInside(
    worker,
    sandbox,
    // Quotes by `stat` are switched off, and times are UTC.
    {
      argv: ['/bin/sh', '-c', script.text, 'sh', ...script.args],
      env: { LC_ALL: 'C', QUOTING_STYLE: 'literal', TZ: 'UTC0' },
      // Its shell then stays until all was read: Kubernetes drops what is on its way from one that is over.
      noStdin: script.stdin === undefined,
    },
    {
      stdin: script.stdin,
      onStdout: printed.within(script.onStdout ?? (() => {})),
      onStderr: printed.within((chunk) => stderr.push(chunk)),
    },
    {
      timeoutMs: Math.min(script.timeoutMs ?? timeoutMs, leftMs),
      signal: AbortSignal.any(stops),
    },
  )
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

/** Counts what a script prints, and passes it on as long as it is within bounds. */
function boundPrinted(mostBytes: number) {
  const tooMuch = new AbortController()
  let left = mostBytes
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

function problemOf(status: number, words: string): Problem {
  if (status === exits.badPattern) {
    const message = words.trim().replace(/^grep: /, '') || 'is no regular expression'
    return new Problem('invalid_request', `The pattern is not valid: ${message}.`, {
      members: { errors: [{ path: 'pattern', message }] },
    })
  }
  const known = problemOfExit[status] ?? problemOfWords.find(([meant]) => meant.test(words))?.slice(1)
  if (known) return new Problem(...(known as [ErrorCode, string]))
  return new Problem('internal_error', `The file script ended with status ${status}.`)
}

/** Keeps what a script prints, up to `limit` bytes, in one piece: however small the chunks, they cost no more. */
export function gather(limit: number) {
  const kept = new GrowingBuffer(limit)
  return {
    onStdout(chunk: Buffer) {
      kept.push(chunk)
    },
    bytes: () => kept.bytes,
  }
}
