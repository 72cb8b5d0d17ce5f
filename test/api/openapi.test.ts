/** The description of the API is made of what serves it. */
import { expect, test } from 'vitest'
import { codesOf, describeApi } from '../../api/http/openapi.ts'
import { served } from '../../api/routes/index.ts'
import { errors } from '../../shared/contract/errors.ts'
import { endpoints } from '../../shared/contract/index.ts'
import { callAs } from '../support/account.ts'
import { shareWorld } from '../support/shared.ts'

const world = shareWorld({ workers: 0 })

test('every route that is served is described, and every route of the contract is served', async () => {
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

test('it is OpenAPI 3.1 in which every reference leads somewhere', () => {
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

test('/v1/docs shows every route and every error to people, with links that lead somewhere', async () => {
  const response = await fetch(`${world.url()}/v1/docs`)
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
  const page = await response.text()
  for (const [path, methods] of Object.entries(describeApi().paths)) {
    for (const method of Object.keys(methods)) expect(page).toContain(`${method.toUpperCase()} ${path}`)
  }
  for (const code of Object.keys(errors)) expect(page).toContain(`<code>${code}</code>`)
  const ids = new Set([...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id))
  const links = [...page.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id)
  expect(links.length).toBeGreaterThan(50)
  expect(links.filter((id) => !ids.has(id))).toEqual([])
  // Nothing of the page comes from elsewhere.
  expect(page).not.toMatch(/<script|https?:/)
})

test.each(Object.values(endpoints))(
  '$name names its credential, its parameters and its answers',
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
