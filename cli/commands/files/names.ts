/** Names of files on stdout: the exact bytes for programs; on a terminal, each on its line. */

/** @param base64 given when the name is not UTF-8 */
export function nameBytes(text: string, base64: string | undefined): Buffer {
  if (process.stdout.isTTY) return Buffer.from(text.replace(/[\n\t]/g, '\ufffd'))
  return base64 === undefined ? Buffer.from(text) : Buffer.from(base64, 'base64')
}

export const line = (...parts: (Buffer | string)[]): Buffer =>
  Buffer.concat([...parts, '\n'].map((part) => Buffer.from(part as string)))

export const saysCut = (what: string) => `sandlot: there is more than the ${what} shown.`
