/** Formats file names and text: exact bytes for programs, one line for terminals. */
import { exitCodes } from '../../core/errors.ts'
import type { Output } from '../../core/output.ts'

/** @param base64 the exact bytes of a name that is not UTF-8 */
export function nameBytes(text: string, base64: string | undefined): Buffer {
  if (process.stdout.isTTY) return Buffer.from(text.replace(/[\n\t]/g, '\ufffd'))
  return textBytes(text, base64)
}

/** @param base64 the exact bytes of text that is not UTF-8 */
export const textBytes = (text: string, base64: string | undefined): Buffer =>
  base64 === undefined || process.stdout.isTTY ? Buffer.from(text) : Buffer.from(base64, 'base64')

export const line = (...parts: (Buffer | string)[]): Buffer =>
  Buffer.concat([...parts, '\n'].map((part) => Buffer.from(part as string)))

/** Prints a note that the list is incomplete, and returns the exit code. */
export function reportMore({ note }: Output, shown: string): number {
  note(`sandlot: the list is incomplete: only the first ${shown} are shown.`)
  return exitCodes.more
}
