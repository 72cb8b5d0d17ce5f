import * as z from 'zod'
import type { Endpoint } from '../../shared/contract/endpoint.ts'
import { families } from '../../shared/contract/index.ts'
import { limits } from '../../shared/contract/limits.ts'
import { createEndpoints } from '../../shared/contract/sandboxes.ts'
import type { Settings } from '../../shared/platform/settings.ts'
import type { Schema } from './docs-fields.ts'
import { type Described, describeDefault, offered } from './json-schema.ts'
import { bytes, content, describedHeaders, describeResponses, octets } from './responses.ts'
import { samplesOf } from './samples.ts'

type Json = Record<string, unknown>

export interface ApiDescription extends Json {
  openapi: string
  paths: Record<string, Record<string, Json>>
}

/** @param settings if given, the description includes the installation's images and maximum TTL */
export function describeApi(settings?: Settings): ApiDescription {
  const components = new Map<string, Json>()
  const paths: ApiDescription['paths'] = {}
  for (const [tag, { endpoints }] of Object.entries(families)) {
    for (const endpoint of Object.values(endpoints)) {
      const path = endpoint.path.replace(/:(\w+)/g, '{$1}')
      paths[path] ??= {}
      paths[path][endpoint.method.toLowerCase()] = {
        tags: [tag],
        ...describeOperation(endpoint, components, settings),
      }
    }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Sandlot',
      version: '1',
      description:
        'Short-lived, isolated sandboxes for running commands and working with files. Strings must be well-formed ' +
        'Unicode; a lone surrogate gets 400. `x-max-bytes` is the maximum size, in UTF-8 bytes, of a string, or of ' +
        'all strings in an object or array together.',
      contact: { name: 'The service operator' },
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    tags: Object.entries(families).map(([name, { about }]) => ({ name, description: about })),
    paths,
    components: {
      schemas: Object.fromEntries(components),
      headers: describedHeaders,
      securitySchemes: {
        key: { type: 'http', scheme: 'bearer', description: 'An API key' },
        token: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'JWT',
          description:
            'A session token from a sign-up or login. It can only manage API keys, the password, sessions and the account',
        },
      },
    },
  }
}

function describeOperation(endpoint: Endpoint, components: Map<string, Json>, settings?: Settings): Json {
  const schemaOf = (schema: z.ZodType, io: 'input' | 'output') => toSchema(schema, io, components)
  const inputOf = (schema: z.ZodType | undefined): Schema => (schema ? schemaOf(schema, 'input') : {})
  const { body, rawBody } = endpoint
  const given = inputOf(body)
  if (createEndpoints.includes(endpoint) && settings) offerIn(given, settings)
  return {
    operationId: endpoint.name,
    summary: endpoint.summary,
    description: needs[endpoint.scope ?? endpoint.credential],
    security: endpoint.credential === 'none' ? [] : [{ [endpoint.credential]: [] }],
    parameters: [
      ...parametersIn('path', inputOf(endpoint.params)),
      ...parametersIn('query', inputOf(endpoint.query)),
      ...parametersIn('header', inputOf(endpoint.headers)),
    ],
    ...(body ? { requestBody: describeBody(endpoint, body, content({ ...given })) } : {}),
    ...(rawBody ? { requestBody: { description: 'Empty by default', ...content(bytes, octets) } } : {}),
    responses: describeResponses(endpoint, schemaOf),
    'x-codeSamples': samplesOf(endpoint),
  }
}

const needs = {
  none: 'Requires no credential.',
  token: 'Requires a session token.',
  key: 'Requires an API key.',
  run: 'Requires an API key with the `run` or `full` scope.',
  full: 'Requires an API key with the `full` scope.',
}

function offerIn({ properties = {} }: Schema, { sandbox }: Settings) {
  for (const [name, facts] of Object.entries(offered(sandbox))) Object.assign(properties[name]!, facts)
}

function parametersIn(place: 'path' | 'query' | 'header', schema: Schema): Json[] {
  const { properties = {}, required = [] } = schema
  const together = choiceIn(schema)
  const one = Object.entries(properties)
    // OpenAPI does not allow `Accept` as a parameter. The response media types imply this header.
    .filter(([name]) => name !== 'accept' && !together?.names.includes(name))
    .map(([name, { description, ...inner }]) => ({
      name,
      in: place,
      required: place === 'path' || required.includes(name),
      ...(description === undefined ? {} : { description }),
      ...(inner.type === 'object' ? dotted(name, inner) : { schema: inner }),
    }))
  if (!together) return one
  const { names, isNeeded } = together
  return [
    {
      name: 'file',
      in: place,
      required: isNeeded,
      description: `${names.map((name) => `\`${name}\``).join(' or ')}, but not both`,
      // `style` and `explode` make each property a separate parameter in the URL.
      style: 'form',
      explode: true,
      schema: {
        type: 'object',
        properties: Object.fromEntries(names.map((name) => [name, properties[name]!])),
        additionalProperties: false,
        ...(isNeeded ? { minProperties: 1 } : {}),
        maxProperties: 1,
      },
    },
    ...one,
  ]
}

/** Describes an object whose entries are sent as separate parameters, such as `metadata.a=b`. */
const dotted = (name: string, { additionalProperties, maxProperties }: Schema) => ({
  style: 'form',
  explode: true,
  schema: {
    type: 'object',
    patternProperties: { [`^${name}\\..`]: additionalProperties },
    additionalProperties: false,
    maxProperties,
  },
})

/**
 * Returns the names of a schema's mutually exclusive fields. OpenAPI cannot describe separate parameters as
 * exclusive, so these fields are described as the properties of a single parameter.
 */
function choiceIn({ oneOf, not }: Schema): { names: string[]; isNeeded: boolean } | undefined {
  if (oneOf) return { names: oneOf.flatMap(({ required = [] }) => required), isNeeded: true }
  return not?.required && { names: not.required, isNeeded: false }
}

const describeBody = ({ bodyBytes = limits.usualBodyBytes }: Endpoint, body: z.ZodType, content: Json) => ({
  description: `At most ${bodyBytes.toLocaleString('en')} bytes`,
  required: !body.safeParse(undefined).success,
  ...content,
})

function toSchema(schema: z.ZodType, io: 'input' | 'output', components: Map<string, Json>): Json {
  const made = z.toJSONSchema(schema, { io, override: (described) => plainer(described, io) })
  const pointed = JSON.stringify(made).replaceAll('"#/$defs/', '"#/components/schemas/')
  const { $schema, $defs = {}, ...described } = JSON.parse(pointed)
  for (const [name, component] of Object.entries<Json>($defs)) components.set(name, component)
  return described
}

function plainer({ zodSchema, jsonSchema }: Described, io: 'input' | 'output') {
  describeDefault({ zodSchema, jsonSchema })
  if (io === 'input') return
  if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties
  if (jsonSchema.format === 'date-time') delete jsonSchema.pattern
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
}
