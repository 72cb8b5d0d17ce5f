import { parse } from 'node:querystring'
import { invalid } from '../errors/invalid.ts'
import { whyNoText } from './utf8.ts'

/**
 * @param text the query string. Node guarantees that it is ASCII.
 * @returns the parameters by name. A parameter that occurs more than once is an array.
 * @throws {Problem} `invalid_request` if a name or value is not UTF-8
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

const decode = (text: string): string =>
  text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))

function readText(bytes: Buffer, path: string): string {
  const message = whyNoText(bytes)
  if (message !== undefined) throw invalid({ path, message })
  return bytes.toString('utf8')
}
