import type { IncomingHttpHeaders } from 'node:http'
import type { Endpoint } from '../../shared/contract/endpoint.ts'
import { Problem } from '../../shared/platform/problem.ts'

const conditions = ['if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since']

/** @throws {Problem} `invalid_request` or `unsupported_media_type` */
export function assertSupportedHeaders(endpoint: Endpoint, sent: IncomingHttpHeaders): void {
  if (endpoint.method === 'GET') return
  const known = endpoint.headers?.shape ?? {}
  for (const name of conditions) {
    if (sent[name] !== undefined && !(name in known))
      throw refused(name, 'sets a condition that this route does not support')
  }
  if (sent['content-range'] !== undefined)
    throw refused('content-range', 'is not supported, because the body must be complete')
  const encoding = sent['content-encoding']?.toLowerCase() ?? 'identity'
  if (endpoint.rawBody && encoding !== 'identity')
    throw wrongEncoding(
      'This route does not decode request bodies. Send the body without Content-Encoding.',
      ['identity'],
    )
}

export const wrongEncoding = (detail: string, accepted: string[]) =>
  new Problem('unsupported_media_type', detail, { members: { encodings: accepted } })

const refused = (name: string, why: string) =>
  new Problem(
    'invalid_request',
    `The ${name} header ${why}. The request had no effect. Send the request without this header.`,
    { members: { errors: [{ path: name, message: why }] } },
  )
