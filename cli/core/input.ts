/** Reads stdin and local files. */
import { isUtf8 } from 'node:buffer'
import { createReadStream, fstatSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { limits } from '../../shared/contract/limits.ts'
import { CliError, largeHint } from './errors.ts'

/** Whether stdin is a pipe, a socket or a file, and not a terminal or /dev/null. */
export function hasPipedInput(): boolean {
  try {
    const stat = fstatSync(0)
    return stat.isFIFO() || stat.isSocket() || stat.isFile()
  } catch {
    return false // closed
  }
}

/**
 * @param note called once if reading takes long, because waiting for an open pipe looks like a hang
 * @throws {CliError} `body_too_large` as soon as the limit is exceeded
 */
export async function readInput(note: (text: string) => void): Promise<Buffer> {
  const timer = setTimeout(() => note('Waiting for the end of stdin.'), 2000)
  try {
    return await readWhole(process.stdin, 'stdin')
  } finally {
    clearTimeout(timer)
  }
}

/** @throws {CliError} if the file cannot be read or is too large */
export async function readLocalFile(path: string): Promise<Buffer> {
  try {
    return await readWhole(createReadStream(path), path)
  } catch (error) {
    if (error instanceof CliError) throw error
    throw new CliError('failed', `${path} cannot be read: ${(error as Error).message}`)
  }
}

/** @returns undefined if the bytes are not UTF-8 */
export const decodeUtf8 = (bytes: Buffer): string | undefined =>
  isUtf8(bytes) ? bytes.toString() : undefined

async function readWhole(stream: Readable, name: string): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of stream) {
    chunks.push(chunk)
    size += chunk.length
    if (size > limits.bodyBytes) {
      throw new CliError(
        'body_too_large',
        `${name} exceeds the request limit of ${limits.bodyBytes} bytes.`,
        { hint: largeHint },
      )
    }
  }
  return Buffer.concat(chunks)
}
