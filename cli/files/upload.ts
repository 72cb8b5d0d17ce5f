import { createReadStream, type Stats, statSync } from 'node:fs'
import type { Readable } from 'node:stream'
import type { Reply } from '../core/api.ts'
import { CliError } from '../core/errors.ts'
import { type Progress, startTransfer } from '../core/progress.ts'
import type { RemotePath } from './download.ts'
import { openPipeForReading, resolveTarget } from './local-file.ts'

/** Timeout of an upload in milliseconds, equal to the maximum TTL of a session. */
const timeoutMs = 24 * 60 * 60 * 1000

export interface UploadOptions {
  /** Octal mode. Default: the local file's mode if `keepsMode` is true, or else the service's default. */
  mode?: string | undefined
  keepsMode?: boolean
  overwrite?: boolean
  /** Expected SHA-256 of the existing file. A file with a different hash is not replaced. */
  ifMatch?: string | undefined
}

/** @param local path of a file, pipe or device, or - for stdin */
export async function sendFile(
  { api, id, path, output }: RemotePath,
  local: string,
  { overwrite = true, keepsMode = true, ifMatch, ...options }: UploadOptions = {},
): Promise<Reply<'writeRawFile'>> {
  const stats = local === '-' ? undefined : statsOf(local)
  const isFile = stats?.isFile() ?? false
  using progress = output.progress(path)
  const bytes = counting(openBytes(local, isFile), path, isFile ? stats!.size : undefined, progress)
  const localMode = isFile && keepsMode ? (stats!.mode & 0o777).toString(8).padStart(3, '0') : undefined
  const mode = options.mode ?? localMode
  return await api.call('writeRawFile', {
    params: { id },
    query: { path, mode, overwrite: overwrite ? undefined : 'false' },
    ...(ifMatch !== undefined && { headers: { 'if-match': `"${ifMatch}"` } }),
    bytes,
    timeoutMs,
  })
}

const counting = (
  bytes: AsyncIterable<Uint8Array>,
  path: string,
  whole: number | undefined,
  progress: Progress,
): AsyncIterable<Uint8Array> => ({
  async *[Symbol.asyncIterator]() {
    const transfer = startTransfer(progress, path, whole)
    for await (const chunk of bytes) {
      yield chunk
      transfer.add(chunk)
    }
  },
})

function statsOf(local: string): Stats {
  try {
    const stats = statSync(local)
    if (stats.isDirectory()) throw new Error('it is a directory')
    return stats
  } catch (error) {
    throw unreadable(local, error)
  }
}

/** Reads the source from the start for each attempt. A pipe allows only one attempt. */
function openBytes(local: string, isFile: boolean): AsyncIterable<Uint8Array> {
  let begun = false
  return {
    async *[Symbol.asyncIterator]() {
      if (begun && !isFile)
        throw new CliError(
          'network',
          `The upload failed. It cannot be retried, because ${nameOf(local)} can be read only once.`,
        )
      begun = true
      try {
        yield* openSource(local)
      } catch (error) {
        throw unreadable(nameOf(local), error)
      }
    },
  }
}

function openSource(local: string): Readable {
  if (local === '-') return process.stdin
  const { path, kind } = resolveTarget(local)
  return kind === 'pipe' ? openPipeForReading(path) : createReadStream(path, { highWaterMark: 256 * 1024 })
}

const nameOf = (local: string): string => (local === '-' ? 'stdin' : local)

const unreadable = (name: string, error: unknown) =>
  new CliError('failed', `${name} cannot be read: ${(error as Error).message}`)
