/** Content negotiation by the `Accept` header (RFC 9110, section 12.5.1). */

/** Whether the header accepts a media type: by the most specific range that matches it. No header accepts everything. */
export function accepts(accept: string | undefined, type: string): boolean {
  if (accept === undefined || accept.trim() === '') return true
  const weights = new Map(
    accept.split(',').map((range) => {
      const [name = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase())
      const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? '1'
      return [name, Number(weight) || 0]
    }),
  )
  const ranges = [type, `${type.split('/', 1)[0]}/*`, '*/*'].map((range) => weights.get(range))
  return (ranges.find((weight) => weight !== undefined) ?? 0) > 0
}
