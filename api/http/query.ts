import { parse } from 'node:querystring'
import { invalid } from '../errors/invalid.ts'
import { whyNoText } from './utf8.ts'

/**
 * Parses a query string. A repeated parameter becomes an array, and parameters such as `metadata.a` and
 * `metadata.b` become one object, `metadata`.
 * @throws {Problem} `invalid_request` if a name or value is not UTF-8
 */
export function readQuery(text: string): Record<string, unknown> {
  // Node guarantees that the text is ASCII.
  const parameters = parse(text, '&', '=', { decodeURIComponent: decode })
  const entries = Object.entries(parameters).map(([name, value]) => {
    const shown = Buffer.from(name, 'latin1').toString('utf8')
    const read = (bytes: string) => readText(Buffer.from(bytes, 'latin1'), shown)
    // Zod ignores this name in an object.
    if (shown.endsWith('.__proto__')) throw invalid({ path: shown, message: 'must have a different name' })
    return [read(name), Array.isArray(value) ? value.map(read) : read(value ?? '')] as const
  })
  const plain = entries.filter(([name]) => !name.includes('.'))
  const byObject = Map.groupBy(
    entries.filter(([name]) => name.includes('.')),
    ([name]) => name.slice(0, name.indexOf('.')),
  )
  const objects = [...byObject].map(([object, fields]) => [
    object,
    Object.fromEntries(fields.map(([name, value]) => [name.slice(object.length + 1), value])),
  ])
  return Object.fromEntries([...objects, ...plain])
}

const decode = (text: string): string =>
  text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))

function readText(bytes: Buffer, path: string): string {
  const message = whyNoText(bytes)
  if (message !== undefined) throw invalid({ path, message })
  return bytes.toString('utf8')
}
