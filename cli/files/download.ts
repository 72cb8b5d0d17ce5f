import { createHash } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import type { Readable, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Api } from '../core/api.ts'
import { CliError } from '../core/errors.ts'
import { ConnectionError } from '../core/http.ts'
import type { Output } from '../core/output.ts'
import { printable } from '../core/printable.ts'
import { noProgress, startTransfer } from '../core/progress.ts'
import { NewFile, openPipeForWriting, resolveTarget } from './local-file.ts'

export interface RemotePath {
  api: Api
  id: string
  path: string
  output: Output
}

const toStdout = () => process.stdout

interface Shown {
  start_line?: number | undefined
  end_line?: number | undefined
  reveal?: 'true' | 'false'
}

/** Prints a file to stdout, without control characters if stdout is a terminal. Ignores EPIPE. */
export async function printFile(source: RemotePath, shown: Shown = {}): Promise<void> {
  try {
    await receive(source, toStdout, shown)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error
  }
}

/**
 * Downloads a file. Replaces the local file atomically and sets its mode, or writes to a local pipe or
 * device.
 */
export async function saveFile(source: RemotePath, local: string) {
  try {
    const { path, kind } = resolveTarget(local)
    if (kind === 'file') return await replace(source, path)
    const open = () => (kind === 'pipe' ? openPipeForWriting(path) : createWriteStream(path, { flags: 'a' }))
    return await receive(source, open)
  } catch (error) {
    if (error instanceof CliError) throw error
    throw new CliError('failed', `${local} cannot be written: ${(error as Error).message}`)
  }
}

async function replace(source: RemotePath, path: string) {
  const file = new NewFile(path)
  try {
    for (let attempt = 1; ; attempt++) {
      try {
        const facts = await receive(source, () => file.open())
        file.commit(facts.mode)
        return facts
      } catch (error) {
        if (!(error instanceof ConnectionError) || attempt === 3) throw error
      }
    }
  } catch (error) {
    file.discard()
    throw error
  }
}

async function receive(
  { api, id, path, output }: RemotePath,
  open: () => Writable | Promise<Writable>,
  shown: Shown = {},
) {
  const { response, fail } = await api.open('readRawFile', { params: { id }, query: { path, ...shown } })
  const hash = createHash('sha256')
  const whole = Number(response.headers['content-length'] ?? 0)
  const isShown = open === toStdout && process.stdout.isTTY
  // The progress line would mix with the text.
  using progress = isShown ? noProgress : output.progress(path)
  const transfer = startTransfer(progress, path, whole)
  let broken: unknown
  async function* counted(source: Readable) {
    try {
      for await (const chunk of source as AsyncIterable<Buffer>) {
        hash.update(chunk)
        transfer.add(chunk)
        yield chunk
      }
    } catch (error) {
      broken = error
      throw error
    }
  }
  try {
    const out = await open()
    const pass = isShown ? clean : (source: AsyncIterable<Buffer>) => source
    await pipeline(response, counted, pass, out, { end: out !== process.stdout })
  } catch (error) {
    response.destroy()
    // pipeline() reports the first error. A failed destination also destroys the source with an error.
    throw error === broken ? fail(broken) : error
  }
  return { size: transfer.bytes, sha256: hash.digest('hex'), mode: modeOf(response.headers['x-file-mode']) }
}

/**
 * Returns the file's mode without setuid and setgid, so that a program copied from a sandbox never runs with
 * its owner's privileges.
 */
const modeOf = (header: string | string[] | undefined): number | undefined =>
  header === undefined ? undefined : Number.parseInt(String(header), 8) & 0o777

async function* clean(source: AsyncIterable<Buffer>) {
  const decoder = new TextDecoder()
  let held = ''
  for await (const chunk of source) {
    const text = held + decoder.decode(chunk, { stream: true })
    // The next chunk may continue the line end.
    let end = text.length
    while (text[end - 1] === '\r') end--
    held = text.slice(end)
    yield printable(text.slice(0, end))
  }
  yield printable(held + decoder.decode())
}
