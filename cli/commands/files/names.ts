/** Formats file names and lines of text: as exact bytes for programs, and as a single line for terminals. */
import { exitCodes } from '../../core/errors.ts'
import type { Output } from '../../core/output.ts'

/**
 * Encodes a file name for stdout.
 * @param base64 the exact bytes, if the name is not valid UTF-8
 */
export function nameBytes(text: string, base64: string | undefined): Buffer {
  if (process.stdout.isTTY) return Buffer.from(text.replace(/[\n\t]/g, '\ufffd'))
  return textBytes(text, base64)
}

/**
 * Encodes text for stdout.
 * @param base64 the exact bytes, if the text is not valid UTF-8
 */
export const textBytes = (text: string, base64: string | undefined): Buffer =>
  base64 === undefined || process.stdout.isTTY ? Buffer.from(text) : Buffer.from(base64, 'base64')

export const line = (...parts: (Buffer | string)[]): Buffer =>
  Buffer.concat([...parts, '\n'].map((part) => Buffer.from(part as string)))

/** Prints a note that a list is incomplete. Returns the exit code for an incomplete result. */
export function reportMore({ note }: Output, shown: string): number {
  note(`sandlot: the list is incomplete: only the first ${shown} are shown.`)
  return exitCodes.more
}
