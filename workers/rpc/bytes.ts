import type { Readable, Writable } from 'node:stream'
import { untilAny } from '../../shared/lib/until-any.ts'
import { Problem } from '../../shared/platform/problem.ts'

/** Writes to a stream. Resolves when the stream can accept more data or is closed. */
export async function write(out: Writable, text: string | Buffer): Promise<void> {
  if (out.destroyed || out.write(text)) return
  await untilAny(out, ['drain', 'close'])
}

/** Iterates over a request body. If the loop ends early, the connection stays open for an error response. */
export const bytesOfBody = (body: Readable): AsyncIterable<Buffer> =>
  body.iterator({ destroyOnReturn: false })

interface ByteRange {
  from: number
  to: number
}

/**
 * Parses a Range header (RFC 9110): `bytes=a-b`, `bytes=a-` or `bytes=-n`. `to` is exclusive.
 * @returns undefined, meaning all bytes, if there is no header, or if the header has a different unit or
 *   several ranges, which servers are allowed to ignore
 * @throws {Problem} `invalid_request` or `range_not_satisfiable`
 */
export function rangeOf(header: string | undefined, start: number, end: number): ByteRange | undefined {
  if (header === undefined || !/^bytes=/i.test(header)) return undefined
  const ranges = header
    .slice('bytes='.length)
    .split(',')
    .map((range) => /^(\d*)-(\d*)$/.exec(range.trim()))
  if (ranges.some((range) => !range || range[0] === '-')) throw notRanges()
  if (ranges.length > 1) return undefined
  const [, first, last] = ranges[0]!
  const from = first === '' ? Math.max(start, end - Number(last)) : Number(first)
  const to = first === '' || last === '' ? end : Math.min(end, Number(last) + 1)
  if (from < start || from >= to) {
    throw new Problem(
      'range_not_satisfiable',
      `Only bytes ${start} to ${end} are available. Request a range within these bytes.`,
      {
        members: { start, end },
      },
    )
  }
  return { from, to }
}

export const headersOf = ({ from, to }: ByteRange, isPart: boolean, total: number | '*') => ({
  'content-type': 'application/octet-stream',
  'accept-ranges': 'bytes',
  'content-length': String(to - from),
  ...(isPart && to > from ? { 'content-range': `bytes ${from}-${to - 1}/${total}` } : {}),
})

const notRanges = () =>
  new Problem('invalid_request', 'The Range header must specify bytes, for example bytes=0-99.', {
    members: { errors: [{ path: 'range', message: 'must specify bytes, for example bytes=0-99' }] },
  })
