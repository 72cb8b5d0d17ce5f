import type * as z from 'zod'
import { type Endpoint, ProblemDetails } from '../../shared/contract/endpoint.ts'
import { type ErrorCode, errors } from '../../shared/contract/errors.ts'
import { limits } from '../../shared/contract/limits.ts'

type Json = Record<string, unknown>

export const octets = 'application/octet-stream'
export const bytes: Json = { type: 'string', format: 'binary' }

export const content = (schema: Json, type = 'application/json') => ({ content: { [type]: { schema } } })

const text = { type: 'string' }
const count = { type: 'integer' }

export const describedHeaders = {
  'X-Request-Id': { description: 'Identifies this request in the logs', schema: text },
  'X-RateLimit-Limit': { description: 'Number of requests allowed per minute', schema: count },
  'X-RateLimit-Remaining': { description: 'Number of requests that can be sent immediately', schema: count },
  'Retry-After': { description: 'Number of seconds to wait before retrying', schema: count },
  Location: { description: 'Path of the created resource', schema: text },
  ETag: { description: "The file's SHA-256 hash in double quotes", schema: text },
  'X-File-Mode': { description: "The file's permission bits in octal", schema: text },
  'Content-Range': { description: 'Byte range of the response and total size', schema: text },
  'Accept-Encoding': {
    description: 'Content encodings that the route accepts for request bodies',
    schema: text,
  },
}

type HeaderName = keyof typeof describedHeaders

const references = (names: HeaderName[]) =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))

type SchemaOf = (schema: z.ZodType, io: 'input' | 'output') => Json

export function describeResponses(endpoint: Endpoint, schemaOf: SchemaOf): Json {
  return {
    ...describeSuccess(endpoint, schemaOf),
    ...describeProblems(endpoint, schemaOf),
  }
}

function describeSuccess(endpoint: Endpoint, schemaOf: SchemaOf): Json {
  const { status, alsoStatus, method, headers } = endpoint
  const names = Object.keys(headers?.shape ?? {})
  const isTagged = names.includes('if-none-match') && method === 'GET'
  const usual: HeaderName[] = [
    'X-Request-Id',
    'X-RateLimit-Limit',
    'X-RateLimit-Remaining',
    ...(isTagged ? (['ETag', 'X-File-Mode'] as const) : []),
  ]
  const given = contentOf(endpoint, schemaOf)
  const whole = { headers: references(usual), ...given }
  const description = isStreamed(endpoint) ? `${descriptions[status]}. ${stallRule}` : descriptions[status]
  const later = { headers: references([...usual, 'Location']), ...(endpoint.alsoEmpty ? {} : given) }
  const part = { headers: references([...usual, 'Content-Range']), ...given }
  return {
    [status]: { description, ...whole },
    ...(endpoint.alsoFound ? { 200: { description: 'The resource exists already', ...whole } } : {}),
    ...(alsoStatus
      ? { [alsoStatus]: { description: 'Accepted; processing continues in the background', ...later } }
      : {}),
    ...(names.includes('range') ? { 206: { description: 'The requested byte range', ...part } } : {}),
    ...(isTagged ? { 304: { description: 'Not modified', headers: references(usual) } } : {}),
  }
}

const isStreamed = ({ rawReply, alsoReply }: Endpoint): boolean =>
  [rawReply, alsoReply].some((type) => type !== undefined && type !== 'text/html')

const stallRule =
  'The connection is closed if the client does not read pending data for 30 s (`CLIENT_STALL_SECONDS`). For event ' +
  'streams, this timeout is 60 times as long.'

const streamRule =
  `an account may have at most ${limits.streams} open streamed responses and ${limits.streams} open uploads on one ` +
  'worker'

const schemas = { [octets]: bytes, 'text/event-stream': {}, 'text/html': text }

const descriptions = {
  101: 'The connection becomes a WebSocket',
  200: 'Success',
  201: 'Created',
  204: 'Success',
}

function contentOf({ reply, rawReply, alsoReply }: Endpoint, schemaOf: SchemaOf): Json {
  if (rawReply === 'websocket') return {}
  // Client generators disagree on whether the schema of a stream describes one event or the whole stream.
  if (rawReply) return content(schemas[rawReply], rawReply)
  if (!reply) return {}
  const json = content(schemaOf(reply, 'output')).content
  return { content: { ...json, ...(alsoReply ? content({}, alsoReply).content : {}) } }
}

function describeProblems(endpoint: Endpoint, schemaOf: SchemaOf): Json {
  const { refusals = {}, reply } = endpoint
  const problem = content(schemaOf(ProblemDetails, 'output'), 'application/problem+json').content
  const byStatus = Map.groupBy(codesOf(endpoint), (code) => errors[code].status as number)
  const statuses = new Set([...byStatus.keys(), ...Object.keys(refusals).map(Number)])
  const described = [...statuses].map((status) => {
    const codes = byStatus.get(status) ?? []
    const waits = status === 429 || status === 503
    const headers = references([
      'X-Request-Id',
      ...(waits ? (['Retry-After'] as const) : []),
      ...(status === 429 ? (['X-RateLimit-Limit', 'X-RateLimit-Remaining'] as const) : []),
      ...(status === 415 ? (['Accept-Encoding'] as const) : []),
      ...(status === 416 ? (['Content-Range'] as const) : []),
    ])
    const own = refusals[status]
    const description = [
      ...codes.map((code) => `\`${code}\`: ${errors[code].title}`),
      ...(status === 429 && (isStreamed(endpoint) || endpoint.rawBody) ? [streamRule] : []),
      ...(own === undefined ? [] : [own]),
    ].join('; ')
    const types = {
      ...(codes.length > 0 ? problem : {}),
      ...(own !== undefined && reply ? content(schemaOf(reply, 'output')).content : {}),
    }
    return [String(status), { description, headers, content: types }]
  })
  return Object.fromEntries(described)
}

export function codesOf(endpoint: Endpoint): ErrorCode[] {
  const { credential, body, params } = endpoint
  const codes: ErrorCode[] = [
    ...endpoint.errors,
    'invalid_request',
    'host_not_allowed',
    'origin_not_allowed',
    'rate_limited',
    'internal_error',
    'unavailable',
  ]
  if (body) codes.push('body_too_large', 'request_timeout')
  if (body || endpoint.rawBody) codes.push('unsupported_media_type')
  if (params) codes.push('not_found')
  if (credential === 'token') codes.push('token_expired')
  if (credential !== 'none') {
    codes.push('missing_credentials', 'invalid_credentials', 'wrong_credential_type', 'account_suspended')
  }
  if (endpoint.scope === 'full') codes.push('scope_not_allowed')
  return [...new Set(codes)].sort()
}
