import { request as openRequest } from 'node:http'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { makeApiKey } from '../../api/auth/api-keys.ts'
import type { Endpoint } from '../../shared/contract/endpoint.ts'
import { endpoints } from '../../shared/contract/index.ts'
import { limits } from '../../shared/contract/limits.ts'
import type { Account } from '../support/account.ts'
import { type RawAnswer, type RawRequest, send } from '../support/http.ts'
import { shareWorld } from '../support/shared.ts'

const world = shareWorld({ workers: 0 })

const endpointsWithBody = Object.values<Endpoint>(endpoints).filter(({ body }) => body)

const as = (account: Account) => ({ authorization: `Bearer ${account.token}` })

function post(account: Account, body: RawRequest['body'], headers: Record<string, string> = {}) {
  const type = { 'content-type': 'application/json' }
  return send(`${world.url()}/v1/api-keys`, {
    method: 'POST',
    headers: { ...as(account), ...type, ...headers },
    ...(body === undefined ? {} : { body }),
  })
}

test('each response has a new request id, even if the client sent one', async () => {
  const paths = ['/', '/v1/nothing', '/v1/account', '/v1/openapi.json', '/healthz', '/metrics']
  const answers = await Promise.all(
    paths.map((path) => send(world.url() + path, { headers: { 'x-request-id': 'mine' } })),
  )
  const ids = answers.map(({ headers }) => String(headers['x-request-id']))
  expect(new Set(ids).size).toBe(paths.length)
  for (const id of ids) expect(id).toMatch(/^req_[0-9a-f-]{36}$/)
  // Only the internal port serves health checks and metrics.
  expect(answers.map(({ status }) => status)).toEqual([404, 404, 401, 200, 404, 404])
})

test('a request with an unsupported method receives 405 and a list of the allowed methods', async () => {
  const { status, headers } = await send(`${world.url()}/v1/sandboxes`, { method: 'PATCH' })
  expect(status).toBe(405)
  expect(headers.allow?.split(', ').sort()).toEqual(['GET', 'HEAD', 'OPTIONS', 'POST'])
  const options = await send(`${world.url()}/v1/sandboxes`, { method: 'OPTIONS' })
  expect([options.status, options.text]).toEqual([204, ''])
  expect(options.headers.allow).toBe(headers.allow)
})

test('a HEAD request returns the same response as a GET request, without the body', async () => {
  const { status, headers, text } = await send(`${world.url()}/v1/openapi.json`, { method: 'HEAD' })
  expect([status, text]).toEqual([200, ''])
  expect(Number(headers['content-length'])).toBeGreaterThan(1_000)
})

test.each([
  ['half of an object', '{"name":', 400],
  ['only spaces', '  ', 400],
  ['a number', '7', 400],
  ['null', 'null', 400],
  ['an object with the key __proto__', '{"__proto__":{"name":"x"}}', 400],
  ['no body', undefined, 400],
  ['an object', '{}', 201],
  ['an object in UTF-8', '{"name":"käse 🧀"}', 201],
])('checks that a request body is a plain JSON object: %s', async (_, body, expected) => {
  const { status, text } = await post(await world.account(), body)
  expect(status).toBe(expected)
  if (expected === 400)
    expect(JSON.parse(text)).toMatchObject({ code: 'invalid_request', errors: [{ path: '' }] })
})

test.each([
  ['application/json; charset=utf-8', 201],
  ['application/x-www-form-urlencoded', 415],
  ['text/plain', 415],
  ['application/jsonp', 415],
  ['', 415],
])('a request with the content type %j receives status %i', async (type, expected) => {
  expect((await post(await world.account(), '{}', { 'content-type': type })).status).toBe(expected)
})

test('accepts a compressed body and limits its decompressed size', async () => {
  const alice = await world.account()
  const gzip = (text: string) => post(alice, gzipSync(text), { 'content-encoding': 'gzip' })
  expect((await gzip('{"name":"packed"}')).status).toBe(201)
  expect((await gzip(`{"name":"${'x'.repeat(limits.usualBodyBytes)}"}`)).status).toBe(413)
  expect((await post(alice, 'no gzip', { 'content-encoding': 'gzip' })).status).toBe(400)
  for (const encoding of ['compress', 'br', 'deflate', 'gzip, gzip']) {
    const { status, headers } = await post(alice, '{}', { 'content-encoding': encoding })
    expect([status, headers['accept-encoding']], encoding).toEqual([415, 'gzip, identity'])
  }
})

test('rejects a large body with an extreme compression ratio', async () => {
  const alice = await world.account()
  const create = (content: string) =>
    send(`${world.url()}/v1/sandboxes/sbx_${'0'.repeat(26)}/files/create`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${alice.key}`,
        'content-type': 'application/json',
        'content-encoding': 'gzip',
      },
      body: gzipSync(JSON.stringify({ path: 'a', content })),
    })
  const refused = await create('x'.repeat(1_000_000))
  expect(refused.status).toBe(413)
  expect(JSON.parse(refused.text).detail).toContain('Send the body uncompressed')
  // Ordinary text has a much lower compression ratio.
  const ordinary = await create(Array.from({ length: 70_000 }, (_, line) => `line ${line}\n`).join(''))
  expect(ordinary.status).toBe(404)
})

test('requests with unknown API keys are rate-limited per address', async () => {
  const alice = await world.account()
  // Other tests use different addresses.
  const from = '127.0.6.1'
  const authenticate = (key: string, from: string) =>
    send(`${world.url()}/v1/account`, { headers: { authorization: `Bearer ${key}` }, from })
  // A different address, because the first lookup of a valid key also counts.
  expect((await authenticate(alice.key, '127.0.6.2')).status).toBe(200)
  // The bucket refills while the requests are sent, so their number depends on the machine.
  let accepted = 0
  let refused: RawAnswer | undefined
  while (!refused) {
    const answers = await Promise.all(Array.from({ length: 100 }, () => authenticate(makeApiKey().raw, from)))
    for (const { status } of answers) expect([401, 429]).toContain(status)
    accepted += answers.filter(({ status }) => status === 401).length
    refused = answers.find(({ status }) => status === 429)
  }
  expect(accepted).toBeGreaterThanOrEqual(300)
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
  expect(JSON.parse(refused.text).detail).toContain('This address has sent more than')
  expect((await authenticate(alice.key, from)).status).toBe(200)
})

test('rejects a body that exceeds the limit, with or without a Content-Length', async () => {
  const alice = await world.account()
  const announced = await sendHead({ ...as(alice), 'content-length': String(limits.usualBodyBytes + 1) })
  expect(announced).toBe(413)
  const hidden = await post(alice, Buffer.alloc(limits.usualBodyBytes + 1, 0x20), {
    'transfer-encoding': 'chunked',
  })
  expect(hidden.status).toBe(413)
  // A body of the maximum size is read, then rejected as invalid JSON.
  expect((await post(alice, Buffer.alloc(limits.usualBodyBytes, 0x20))).status).toBe(400)
})

/** What each route suggests for more than 1 MiB. */
const hints: Record<string, string> = {
  createFile: '.*PUT files/raw',
  editFile: '.*files/raw',
  execCommand: '.*exec/:exec_id/stdin',
  callMcp: '.*exec',
}

test('each route limits the size of its request body and states the limit in the error', async () => {
  const alice = await world.account()
  for (const endpoint of endpointsWithBody) {
    const { method, path, credential, body, bodyBytes = limits.usualBodyBytes } = endpoint
    expect(bodyBytes).toBeLessThanOrEqual(limits.bodyBytes)
    const headers = {
      'content-type': 'application/json',
      'content-length': String(bodyBytes + 1),
      ...(credential === 'none' ? {} : { authorization: `Bearer ${alice[credential]}` }),
    }
    const { status, text } = await send(world.url() + path.replaceAll(/:\w+/g, `sbx_${'0'.repeat(26)}`), {
      method,
      headers,
      body: Buffer.alloc(bodyBytes + 1, ' '),
    })
    expect([path, status, JSON.parse(text).detail]).toEqual([
      path,
      413,
      expect.stringMatching(new RegExp(`${bodyBytes} bytes\\.(${hints[endpoint.name] ?? '$'})`)),
    ])
    expect(body).toBeDefined()
  }
})

test.each([
  ['many empty lists', `[${'[],'.repeat(200_000)}0]`],
  ['nested lists', `${'['.repeat(200_000)}${']'.repeat(200_000)}`],
  ['many fields', `{${'"a":"\\\\",'.repeat(101_000)}"a":0}`],
])('a JSON body with too many values is rejected before it is parsed: %s', async (_, body) => {
  const { key } = await world.account()
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const { status, text } = await send(`${world.url()}/v1/mcp`, { method: 'POST', headers, body })
  expect([status, text.slice(0, 300)]).toEqual([400, expect.stringContaining('more than 100000 values')])
})

test('a validation error stays short even if the request has thousands of invalid fields', async () => {
  const { token } = await world.account()
  const names = ['x'.repeat(10_000), ...Array.from({ length: 5_000 }, (_, index) => `k${index}`)]
  const body = JSON.stringify(Object.fromEntries(names.map((name) => [name, 0])))
  const { status, text } = await post({ token } as Account, body)
  expect(status).toBe(400)
  expect(text.length).toBeLessThan(20_000)
  expect(JSON.parse(text).detail).toContain('5001')
})

test('accepts the longest query string that the contract permits, in any encoding', async () => {
  const { key } = await world.account()
  const longest = 'é'.repeat(4096)
  const query = new URLSearchParams({
    pattern: longest,
    include: longest.slice(0, 1024),
    path: longest.slice(2048),
  })
  const path = `/v1/sandboxes/sbx_${'0'.repeat(26)}/files/grep?${query}`
  const { status, text } = await send(world.url() + path, { headers: { authorization: `Bearer ${key}` } })
  expect([status, JSON.parse(text).code]).toEqual([404, 'not_found'])
})

test('rejects an unauthenticated request before reading its body', async () => {
  const head = { authorization: 'Bearer nobody', 'content-length': String(limits.usualBodyBytes) }
  expect(await sendHead(head)).toBe(401)
})

test('responses forbid caching, content sniffing and framing', async () => {
  const { headers } = await send(`${world.url()}/v1/account`)
  expect(headers).toMatchObject({
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'content-security-policy': expect.stringContaining('default-src'),
    'x-frame-options': expect.any(String),
  })
  expect(headers['x-powered-by']).toBeUndefined()
})

test('logs each request on one line, with its route pattern but without its URL', async () => {
  const alice = await world.account()
  const id = `sbx_${'7'.repeat(26)}`
  const response = await fetch(`${world.url()}/v1/sandboxes/${id}/files/view?path=my-secret-name`, {
    headers: { authorization: `Bearer ${alice.key}` },
  })
  const requestId = response.headers.get('x-request-id')
  const mine = () => world.apis[0]!.lines.filter((line) => line.request_id === requestId)
  const [line] = await world.eventually(() => (mine().length > 0 ? mine() : undefined), 2_000)
  expect(mine()).toHaveLength(1)
  expect(line).toMatchObject({
    msg: 'request',
    method: 'GET',
    route: '/v1/sandboxes/:id/files/view',
    status: 404,
    account_id: alice.id,
    sandbox_id: id,
    ms: expect.any(Number),
  })
  expect(JSON.stringify(world.apis[0]!.lines)).not.toContain('my-secret-name')
})

/** Sends only the headers of a POST. @returns the status code */
function sendHead(headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const head = openRequest(`${world.url()}/v1/api-keys`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      agent: false,
    })
    head.on('response', (response) => {
      resolve(response.statusCode ?? 0)
      head.destroy()
    })
    head.on('error', reject)
    head.flushHeaders()
  })
}
