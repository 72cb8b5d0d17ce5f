/** A file of this machine, of any size, into a session. */
import { createReadStream, statSync } from 'node:fs'
import type { Reply } from '../core/api.ts'
import { CliError } from '../core/errors.ts'
import { type Progress, startTransfer } from '../core/progress.ts'
import type { RemotePath } from './download.ts'

/** No transfer takes longer than its session lives. */
const timeoutMs = 24 * 60 * 60 * 1000

export interface UploadOptions {
  /** Octal. */
  mode?: string | undefined
  overwrite?: boolean
  /** sha256 of the file that is to be replaced. */
  ifMatch?: string | undefined
}

/** @param local a file, or - for stdin */
export async function sendFile(
  { api, id, path, output }: RemotePath,
  local: string,
  { mode, overwrite = true, ifMatch }: UploadOptions = {},
): Promise<Reply<'writeRawFile'>> {
  const bytes = local === '-' ? onlyOnce(process.stdin) : fileBytes(local)
  using progress = output.progress(path)
  return await api.call('writeRawFile', {
    params: { id },
    query: { path, mode, overwrite: overwrite ? undefined : 'false' },
    ...(ifMatch !== undefined && { headers: { 'if-match': `"${ifMatch}"` } }),
    bytes: counting(bytes, path, sizeOf(local), progress),
    timeoutMs,
  })
}

/** Undefined for a pipe or a device, whose size is not known in advance. */
function sizeOf(local: string): number | undefined {
  const stat = local === '-' ? undefined : statSync(local, { throwIfNoEntry: false })
  return stat?.isFile() ? stat.size : undefined
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

/** Read anew for each try. */
function fileBytes(path: string): AsyncIterable<Uint8Array> {
  const unreadable = (error: unknown) =>
    new CliError('failed', `${path} cannot be read: ${(error as Error).message}`)
  try {
    if (statSync(path).isDirectory()) throw new Error('it is a directory')
  } catch (error) {
    throw unreadable(error)
  }
  return {
    async *[Symbol.asyncIterator]() {
      try {
        yield* createReadStream(path, { highWaterMark: 256 * 1024 })
      } catch (error) {
        throw unreadable(error)
      }
    },
  }
}

/** stdin cannot be read twice: a second try would send only the rest. */
function onlyOnce(input: NodeJS.ReadStream): AsyncIterable<Uint8Array> {
  let begun = false
  return {
    async *[Symbol.asyncIterator]() {
      if (begun) throw new CliError('network', 'The connection broke, and stdin cannot be read twice.')
      begun = true
      yield* input
    },
  }
}
