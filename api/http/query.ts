/** Parses the query of a request. */
import { parse } from 'node:querystring'
import { invalid } from '../errors/invalid.ts'
import { whyNoText } from './utf8.ts'

/**
 * @param text ASCII, as Node requires
 * @returns each parameter; a list for one that was given again
 * @throws {Problem} `invalid_request` for one that is not UTF-8
 */
export function readQuery(text: string): Record<string, string | string[]> {
  const parameters = parse(text, '&', '=', { decodeURIComponent: decode })
  return Object.fromEntries(
    Object.entries(parameters).map(([name, value]) => {
      const shown = Buffer.from(name, 'latin1').toString('utf8')
      const read = (bytes: string) => readText(Buffer.from(bytes, 'latin1'), shown)
      return [read(name), Array.isArray(value) ? value.map(read) : read(value ?? '')]
    }),
  )
}

/** Returns one character for each byte. */
const decode = (text: string): string =>
  text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))

function readText(bytes: Buffer, path: string): string {
  const message = whyNoText(bytes)
  if (message !== undefined) throw invalid({ path, message })
  return bytes.toString('utf8')
}
