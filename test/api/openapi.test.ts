import { expect, test } from 'vitest'
import * as z from 'zod'
import type { Schema } from '../../api/http/docs-fields.ts'
import type { Operation } from '../../api/http/docs-page.ts'
import { describeApi } from '../../api/http/openapi.ts'
import { codesOf } from '../../api/http/responses.ts'
import { served } from '../../api/routes/index.ts'
import type { Endpoint } from '../../shared/contract/endpoint.ts'
import { errors } from '../../shared/contract/errors.ts'
import { endpoints, families } from '../../shared/contract/index.ts'
import { callAs } from '../support/account.ts'
import { shareWorld } from '../support/shared.ts'

const world = shareWorld({ workers: 0 })

test('the OpenAPI document lists exactly the routes that the API serves', async () => {
  const names = served.map(({ endpoint }) => `${endpoint.method} ${endpoint.path}`)

  const { body } = await callAs(world, {}, 'getOpenApi')
  const paths = body.paths as Record<string, Record<string, unknown>>
  const described = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ':$1')}`),
  )
  expect(described.sort()).toEqual(names.sort())
  expect(described).toEqual(
    Object.values(endpoints)
      .map(({ method, path }) => `${method} ${path}`)
      .sort(),
  )
})

test('the document is valid OpenAPI 3.1 and has no broken references', () => {
  const description = describeApi()
  expect(description.openapi).toMatch(/^3\.1\./)
  const references = [...JSON.stringify(description).matchAll(/"\$ref":"#\/([^"]+)"/g)].map(
    ([, path]) => path!,
  )
  expect(references.length).toBeGreaterThan(20)
  for (const reference of new Set(references)) {
    const target = reference
      .split('/')
      .reduce<unknown>((at, name) => (at as Record<string, unknown>)?.[name], description)
    expect(target, reference).toBeTypeOf('object')
  }
  expect(JSON.stringify(description)).not.toContain('$defs')
})

test('/v1/docs shows every route and every error with valid links', async () => {
  const response = await fetch(`${world.url()}/v1/docs`)
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
  const page = await response.text()
  const [index = '', body = ''] = page.split('<main>').map(textOf)
  for (const [name, { endpoints }] of Object.entries(families)) {
    expect(index).toContain(name)
    for (const { method, path, summary, ...endpoint } of Object.values(endpoints)) {
      const route = `${method} ${path.replace(/:(\w+)/g, '{$1}')}`
      expect(index).toContain(`${route}${summary.replaceAll('`', '')}`)
      expect(body).toContain(route)
      if (endpoint.example.client) expect(body).toContain(endpoint.example.client)
    }
  }
  expect(body).toContain(`curl "$SANDLOT_URL/v1/sandboxes" \\
  -H "Authorization: Bearer $SANDLOT_API_KEY" \\
  --json '{"name":"build","ttl_seconds":600}'`)
  for (const limit of [
    '1 to 100 characters',
    'at most 32 entries, each name 1 to 64 characters, each value at most 512 characters',
    'list of 1 to 10,000 items: string, at most 131,071 bytes',
    'integer, 1 to 100, default 20',
    'at most 1,048,576 bytes',
  ])
    expect(body).toContain(limit)
  // Each error is described once. Routes only list its code.
  for (const [code, { title }] of Object.entries(errors)) {
    expect(page).toContain(`<dt id="error-${code}"><code>${code}</code>`)
    expect(body.split(`${title}.`).length - 1, title).toBe(1)
  }
  const ids = new Set([...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id))
  const links = [...page.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id)
  expect(links.length).toBeGreaterThan(50)
  expect(links.filter((id) => !ids.has(id))).toEqual([])
  // The page fits a narrow screen: no tables, and long paths wrap before a slash.
  expect(page).not.toContain('<table')
  expect(page).toContain('/v1<wbr>/sandboxes<wbr>/{id}<wbr>/exec<wbr>/{exec_id}<wbr>/attach')
  expect(page).not.toMatch(/<script|https?:/)
})

const textOf = (html: string): string =>
  html.replace(/<[^>]*>/g, '').replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)))

test.each(Object.values(endpoints) as Endpoint[])('the documented example of $name is valid', (endpoint) => {
  const { params, query, headers, body, rawBody, example } = endpoint
  expect((body ?? z.undefined()).safeParse(example.body)).toMatchObject({ success: true })
  expect((query ?? z.undefined()).safeParse(query && (example.query ?? {}))).toMatchObject({ success: true })
  if (headers) expect(headers.safeParse(example.headers ?? {})).toMatchObject({ success: true })
  expect(example.file !== undefined).toBe(rawBody === true)
  const known = ['id', 'exec_id', 'key_id', ...Object.keys(example.params ?? {})]
  expect(known).toEqual(expect.arrayContaining(Object.keys(params?.shape ?? {})))
})

/** The request size already limits the texts in a body. */
const isBounded = (schema: Schema, inBody: boolean): boolean => {
  const { type, enum: values, anyOf, items, pattern, format, maxLength, minimum, properties } = schema
  if (anyOf) return anyOf.every((each) => isBounded(each, inBody))
  if (properties) return Object.values(properties).every((each) => isBounded(each, inBody))
  if (type === 'array') return schema.maxItems !== undefined && isBounded(items!, inBody)
  if (type === 'object') return 'maxProperties' in schema || 'x-max-bytes' in schema
  if (type === 'integer') return minimum !== undefined
  if (type !== 'string' || inBody) return true
  return [values, pattern, format, maxLength, schema['x-max-bytes']].some((limit) => limit !== undefined)
}

test.each(
  Object.entries(describeApi().paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => [`${method} ${path}`, operation] as const),
  ),
)('each field of %s has limits', (_, operation) => {
  const { parameters, requestBody } = operation as unknown as Operation
  // Free text, limited only by Node's header size.
  const free = ['accept', 'prefer', 'range', 'if-range', 'mcp-protocol-version']
  for (const { name, schema } of parameters)
    expect(free.includes(name) || isBounded(schema, false), name).toBe(true)
  const fields = requestBody?.content['application/json']?.schema.properties ?? {}
  for (const [name, schema] of Object.entries(fields)) expect(isBounded(schema, true), name).toBe(true)
})

test.each(Object.values(endpoints))(
  'the document describes the credential, parameters and responses of $name',
  (endpoint) => {
    const path = endpoint.path.replace(/:(\w+)/g, '{$1}')
    const operation = describeApi().paths[path]![endpoint.method.toLowerCase()] as {
      security: Record<string, unknown>[]
      parameters: { name: string; in: string; required: boolean }[]
      responses: Record<string, { headers: Record<string, unknown>; description: string }>
      requestBody?: unknown
    }
    expect(operation.security).toEqual(endpoint.credential === 'none' ? [] : [{ [endpoint.credential]: [] }])
    const inPath = operation.parameters.filter((parameter) => parameter.in === 'path')
    expect(inPath.map(({ name }) => `:${name}`)).toEqual(endpoint.path.match(/:\w+/g) ?? [])
    expect(inPath.every(({ required }) => required)).toBe(true)
    expect('body' in endpoint || 'rawBody' in endpoint).toBe(operation.requestBody !== undefined)

    const success = operation.responses[endpoint.status]!
    expect('X-RateLimit-Remaining' in success.headers).toBe('bucket' in endpoint)
    for (const code of codesOf(endpoint)) {
      expect(operation.responses[errors[code].status]!.description).toContain(`\`${code}\``)
    }
  },
)
