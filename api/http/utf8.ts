import { isUtf8 } from 'node:buffer'

/**
 * Returns why the bytes are not UTF-8, as the predicate of an error message, or undefined if they are UTF-8.
 */
export function whyNoText(bytes: Buffer): string | undefined {
  if (isUtf8(bytes)) return undefined
  const at = invalidAt(bytes)
  return `is not UTF-8: its byte ${at} (0x${bytes[at]!.toString(16)}) is not the beginning of a character`
}

const replacement = Buffer.from('\ufffd')

function invalidAt(bytes: Buffer): number {
  const text = bytes.toString('utf8')
  let at = 0
  for (let from = 0; ; from++) {
    const next = text.indexOf('\ufffd', from)
    at += Buffer.byteLength(text.slice(from, next))
    if (!bytes.subarray(at, at + replacement.length).equals(replacement)) return at
    at += replacement.length
    from = next
  }
}
