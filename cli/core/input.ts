import { isUtf8 } from 'node:buffer'
import { createReadStream, fstatSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { limits } from '../../shared/contract/limits.ts'
import { CliError, largeHint } from './errors.ts'

/** Returns whether stdin is a pipe, a socket or a file, rather than a terminal or /dev/null. */
export function hasPipedInput(): boolean {
  try {
    const stat = fstatSync(0)
    return stat.isFIFO() || stat.isSocket() || stat.isFile()
  } catch {
    return false // closed
  }
}

/**
 * Reads stdin to the end.
 * @throws {CliError} `body_too_large` as soon as it exceeds the maximum request size
 */
export async function readInput(note: (text: string) => void): Promise<Buffer> {
  // Without a note, waiting for an open pipe looks like a hang.
  const timer = setTimeout(() => note('Waiting for EOF on stdin.'), 2000)
  try {
    return await readWhole(process.stdin, 'stdin')
  } finally {
    clearTimeout(timer)
  }
}

/** @throws {CliError} if the file cannot be read or exceeds the maximum request size */
export async function readLocalFile(path: string): Promise<Buffer> {
  try {
    return await readWhole(createReadStream(path), path)
  } catch (error) {
    if (error instanceof CliError) throw error
    throw new CliError('failed', `${path} cannot be read: ${(error as Error).message}`)
  }
}

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
        `${name} exceeds the limit of ${limits.bodyBytes} bytes per request.`,
        { hint: largeHint },
      )
    }
  }
  return Buffer.concat(chunks)
}
