/** The description of the API in OpenAPI 3.1, made of the same schemas that validate. */
import * as z from 'zod'
import { type Endpoint, ProblemDetails } from '../../shared/contract/endpoint.ts'
import { type ErrorCode, errors } from '../../shared/contract/errors.ts'
import { families } from '../../shared/contract/index.ts'
import { limits } from '../../shared/contract/limits.ts'
import { samplesOf } from './samples.ts'

type Json = Record<string, unknown>

export interface ApiDescription extends Json {
  openapi: string
  paths: Record<string, Record<string, Json>>
}

let made: ApiDescription | undefined

/** Made at the first call. */
export function describeApi(): ApiDescription {
  made ??= makeDescription()
  return made
}

function makeDescription(): ApiDescription {
  const components = new Map<string, Json>()
  const paths: ApiDescription['paths'] = {}
  for (const [tag, family] of Object.entries(families)) {
    for (const endpoint of Object.values(family)) {
      const path = endpoint.path.replace(/:(\w+)/g, '{$1}')
      paths[path] ??= {}
      paths[path][endpoint.method.toLowerCase()] = {
        tags: [tag],
        ...describeOperation(endpoint, components),
      }
    }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Sandlot',
      version: '1',
      description: 'Short-lived, isolated sandboxes: run commands in them, work with files in them.',
    },
    servers: [{ url: '/' }],
    tags: Object.keys(families).map((name) => ({ name })),
    paths,
    components: {
      schemas: Object.fromEntries(components),
      headers: {
        'X-Request-Id': { description: 'Names this request in the logs', schema: { type: 'string' } },
        'X-RateLimit-Limit': { description: 'Requests a minute', schema: { type: 'integer' } },
        'X-RateLimit-Remaining': { description: 'Requests left right now', schema: { type: 'integer' } },
        'Retry-After': { description: 'Seconds until it may succeed', schema: { type: 'integer' } },
      },
      securitySchemes: {
        key: { type: 'http', scheme: 'bearer', description: 'An API key' },
        token: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'JWT',
          description: 'The session token of a sign-up or login; manages keys, password and sessions alone',
        },
      },
    },
  }
}

function describeOperation(endpoint: Endpoint, components: Map<string, Json>): Json {
  const schemaOf = (schema: z.ZodType, io: 'input' | 'output') => toSchema(schema, io, components)
  const parametersIn = (place: 'path' | 'query' | 'header', schema: z.ZodObject | undefined) => {
    if (!schema) return []
    const { properties = {}, required = [] } = schemaOf(schema, 'input') as {
      properties?: Record<string, Json>
      required?: string[]
    }
    return Object.entries(properties).map(([name, { description, ...inner }]) => ({
      name,
      in: place,
      required: required.includes(name),
      ...(description === undefined ? {} : { description }),
      schema: inner,
    }))
  }
  const { body, rawBody, reply, rawReply } = endpoint
  const scopes = endpoint.scope === 'run' ? '`run` or `full`' : '`full`'
  const content = (schema: Json, type = 'application/json') => ({ content: { [type]: { schema } } })
  const success = {
    description: endpoint.status === 204 ? 'Done' : 'It is done',
    headers: references(['X-Request-Id', ...limitHeaders]),
    ...(reply ? content(schemaOf(reply, 'output')) : {}),
    ...(rawReply && rawReply !== 'websocket' ? content({ type: 'string' }, rawReply) : {}),
  }
  return {
    operationId: endpoint.name,
    summary: endpoint.summary,
    ...(endpoint.scope && { description: `Needs an API key of scope ${scopes}.` }),
    security: endpoint.credential === 'none' ? [] : [{ [endpoint.credential]: [] }],
    parameters: [
      ...parametersIn('path', endpoint.params),
      ...parametersIn('query', endpoint.query),
      ...parametersIn('header', endpoint.headers),
    ],
    ...(body ? { requestBody: describeBody(endpoint, body, content(schemaOf(body, 'input'))) } : {}),
    ...(rawBody ? { requestBody: { required: true, ...content({}, 'application/octet-stream') } } : {}),
    responses: {
      [endpoint.status]: success,
      ...(endpoint.alsoStatus ? { [endpoint.alsoStatus]: { ...success, description: 'It goes on' } } : {}),
      ...describeProblems(endpoint, content(schemaOf(ProblemDetails, 'output'), 'application/problem+json')),
    },
    'x-codeSamples': samplesOf(endpoint),
  }
}

const describeBody = ({ bodyBytes = limits.usualBodyBytes }: Endpoint, body: z.ZodType, content: Json) => ({
  description: `At most ${bodyBytes.toLocaleString('en')} bytes`,
  required: !body.safeParse(undefined).success,
  ...content,
})

const limitHeaders = ['X-RateLimit-Limit', 'X-RateLimit-Remaining']

const references = (names: string[]) =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))

/** One response for each status, which names the codes it may carry. */
function describeProblems(endpoint: Endpoint, content: Json): Json {
  const byStatus = Map.groupBy(codesOf(endpoint), (code) => errors[code].status)
  const described = [...byStatus].map(([status, codes]) => {
    const waits = status === 429 || status === 503
    const headers = references([
      'X-Request-Id',
      ...(waits ? ['Retry-After'] : []),
      ...(status === 429 ? limitHeaders : []),
    ])
    const description = codes.map((code) => `\`${code}\`: ${errors[code].title}`).join('; ')
    return [String(status), { description, headers, ...content }]
  })
  return Object.fromEntries(described)
}

/** The endpoint's own codes, and those of the steps that every such endpoint passes. */
export function codesOf(endpoint: Endpoint): ErrorCode[] {
  const { credential, body, params } = endpoint
  // Every route has a bucket, checks `Host` and `Origin`, and refuses unknown query parameters.
  const codes: ErrorCode[] = [
    ...endpoint.errors,
    'invalid_request',
    'host_not_allowed',
    'origin_not_allowed',
    'rate_limited',
    'internal_error',
    'unavailable',
  ]
  if (body) codes.push('body_too_large', 'body_too_slow')
  if (body || endpoint.rawBody) codes.push('unsupported_media_type')
  if (params) codes.push('not_found')
  if (credential === 'token') codes.push('token_expired')
  if (credential !== 'none') {
    codes.push('missing_credentials', 'invalid_credentials', 'wrong_credential_type', 'account_suspended')
  }
  if (endpoint.scope === 'full') codes.push('scope_not_allowed')
  return [...new Set(codes)].sort()
}

/** JSON Schema of the draft that OpenAPI 3.1 uses; schemas with an id become components. */
function toSchema(schema: z.ZodType, io: 'input' | 'output', components: Map<string, Json>): Json {
  const made = z.toJSONSchema(schema, { io, override: ({ jsonSchema }) => plainer(jsonSchema, io) })
  const pointed = JSON.stringify(made).replaceAll('"#/$defs/', '"#/components/schemas/')
  const { $schema, $defs = {}, ...described } = JSON.parse(pointed)
  for (const [name, component] of Object.entries<Json>($defs)) components.set(name, component)
  return described
}

/** Leaves out what tells a reader nothing, or would forbid a reply to have new fields. */
function plainer(described: z.core.JSONSchema.BaseSchema, io: 'input' | 'output') {
  if (io === 'output' && described.additionalProperties === false) delete described.additionalProperties
  if (described.format === 'date-time') delete described.pattern
  if (described.maximum === Number.MAX_SAFE_INTEGER) delete described.maximum
  if (described.minimum === Number.MIN_SAFE_INTEGER) delete described.minimum
}
