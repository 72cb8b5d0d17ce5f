/** Content negotiation with the `Accept` header (RFC 9110, section 12.5.1). */

/** A missing or empty header accepts every type. */
export const accepts = (accept: string | undefined, type: string): boolean =>
  accept === undefined || accept.trim() === '' || (weightIn(accept, type) ?? 0) > 0

export function prefersEvents(accept = ''): boolean {
  const events = weightsIn(accept).get('text/event-stream') ?? 0
  return events > 0 && events >= (weightIn(accept, 'application/json') ?? 0)
}

function weightIn(accept: string, type: string): number | undefined {
  const weights = weightsIn(accept)
  return [type, `${type.split('/', 1)[0]}/*`, '*/*']
    .map((range) => weights.get(range))
    .find((weight) => weight !== undefined)
}

const weightsIn = (accept: string): Map<string, number> =>
  new Map(
    accept.split(',').map((range) => {
      const [name = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase())
      const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? '1'
      return [name, Number(weight) || 0]
    }),
  )
