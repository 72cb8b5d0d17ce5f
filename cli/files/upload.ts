import { createReadStream, type Stats, statSync } from 'node:fs'
import type { Readable } from 'node:stream'
import type { Reply } from '../core/api.ts'
import { CliError } from '../core/errors.ts'
import { startTransfer } from '../core/progress.ts'
import type { RemotePath } from './download.ts'
import { openPipeForReading, resolveTarget } from './local-file.ts'

/** Timeout for an upload, in milliseconds: the maximum TTL of a session. */
const timeoutMs = 24 * 60 * 60 * 1000

interface UploadOptions {
  /** Octal mode. Default: the local file's mode if `keepsMode` is true, otherwise the service's default. */
  mode?: string | undefined
  keepsMode?: boolean
  overwrite?: boolean
  /** SHA-256 that the existing file must have. */
  ifMatch?: string | undefined
}

/** @param local path of a file, pipe or device, or - for stdin */
export async function sendFile(
  { api, id, path, output }: RemotePath,
  local: string,
  { overwrite = true, keepsMode = true, ifMatch, ...options }: UploadOptions = {},
): Promise<Reply<'writeRawFile'>> {
  const stats = local === '-' ? undefined : statsOf(local)
  const file = stats?.isFile() ? stats : undefined
  using progress = output.progress(path)
  const localMode = file && keepsMode ? (file.mode & 0o777).toString(8).padStart(3, '0') : undefined
  const mode = options.mode ?? localMode
  try {
    return await api.call('writeRawFile', {
      params: { id },
      query: { path, mode, overwrite: overwrite ? undefined : 'false' },
      ...(ifMatch !== undefined && { headers: { 'if-match': `"${ifMatch}"` } }),
      bytes: openBytes(local, file, () => startTransfer(progress, path, file?.size)),
      timeoutMs,
    })
  } finally {
    // After a failure, stdin may stay open, and would keep the client running.
    if (local === '-') process.stdin.destroy()
  }
}

function statsOf(local: string): Stats {
  try {
    const stats = statSync(local)
    if (stats.isDirectory()) throw new Error('it is a directory')
    return stats
  } catch (error) {
    throw unreadable(local, error)
  }
}

/** Returns the bytes of the source, read from the start on each attempt. A pipe allows only one attempt. */
function openBytes(
  local: string,
  file: Stats | undefined,
  start: () => ReturnType<typeof startTransfer>,
): AsyncIterable<Uint8Array> {
  const name = local === '-' ? 'stdin' : local
  let begun = false
  return {
    async *[Symbol.asyncIterator]() {
      if (begun && !file)
        throw new CliError(
          'network',
          `The upload failed. It cannot be retried, because ${name} can be read only once.`,
        )
      begun = true
      const transfer = start()
      try {
        for await (const chunk of openSource(local)) {
          yield chunk
          transfer.add(chunk)
        }
      } catch (error) {
        throw unreadable(name, error)
      }
    },
  }
}

function openSource(local: string): Readable {
  if (local === '-') return process.stdin
  const { path, kind } = resolveTarget(local)
  return kind === 'pipe' ? openPipeForReading(path) : createReadStream(path, { highWaterMark: 256 * 1024 })
}

const unreadable = (name: string, error: unknown) =>
  new CliError('failed', `${name} cannot be read: ${(error as Error).message}`)
