/** The client with redirects, broken connections and servers other than Sandlot. */
import { execFileSync } from 'node:child_process'
import {
  closeSync,
  constants,
  openSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { makeCertificate } from './certificate.ts'
import { clientPath, Home, runProcess, settingsFor } from './client.ts'
import { startPeer, startTunnel } from './peer.ts'

const key = 'sandlot_live_secret'

const hangUp = (_: IncomingMessage, response: ServerResponse) => void response.destroy()
const fail = (_: IncomingMessage, response: ServerResponse) => response.writeHead(500).end()

test('the client does not follow redirects, regardless of the status code', async () => {
  using home = new Home()
  await using target = await startPeer((_, response) => response.end('{}'))
  for (const status of [301, 302, 303, 307, 308]) {
    await using peer = await startPeer((_, response) =>
      response.writeHead(status, { location: `${target.url}/v1/account` }).end(),
    )
    const { code, json, stderr } = await home.run(['whoami', '--json'], { env: settingsFor(peer.url) })
    expect(code).toBe(8)
    expect(json().error).toMatchObject({ code: 'redirected', status })
    expect(stderr).toContain(target.url)
    expect(peer.asked).toHaveLength(1)
  }
  expect(target.asked).toEqual([])
})

test('the client reports that a response does not come from Sandlot', async () => {
  using home = new Home()
  for (const [status, body] of [
    [200, '<html>Welcome</html>'],
    [404, '<html>Not found</html>'],
    [500, '{"error": "no"}'],
  ] as const) {
    await using peer = await startPeer((_, response) => response.writeHead(status).end(body))
    const { code, json } = await home.run(['whoami', '--json'], { env: settingsFor(peer.url) })
    expect(json().error).toMatchObject({ code: 'unexpected_answer', status })
    expect(code).toBe(8)
  }
})

test.each([
  ['whoami', 8, 'GET /v1/account'],
  ['exec true', 125, 'POST /v1/sandboxes/sbx_a/exec'],
  ['session create', 8, 'POST /v1/sandboxes'],
])(
  'if the connection breaks, the client retries the `%s` request twice with the same Idempotency-Key',
  async (line, code, request) => {
    using home = new Home()
    await using peer = await startPeer(hangUp)
    expect(await home.run(line.split(' '), { env: settingsFor(peer.url) })).toMatchObject({ code })
    expect(peer.asked.map(({ line }) => line)).toEqual(Array(3).fill(request))
    const keys = peer.asked.map(({ headers }) => headers['idempotency-key'])
    expect(keys).toEqual(Array(3).fill(request.startsWith('POST') ? expect.stringMatching(/\S/) : undefined))
    expect(new Set(keys).size).toBe(1)
  },
)

test('the client retries a command with the same Idempotency-Key if the API process is shutting down', async () => {
  using home = new Home()
  const ended = { id: 'exec_b', status: 'exited', exit_code: 0, signal: null, stdout: 'all', stderr: '' }
  const problem = { status: 503, code: 'unavailable', detail: 'Stopping.' }
  await using peer = await startPeer((_, response) =>
    peer.asked.length === 1
      ? response.writeHead(503).end(JSON.stringify(problem))
      : response.end(JSON.stringify(ended)),
  )
  const { code, json } = await home.run(['exec', '--json', '--', 'true'], { env: settingsFor(peer.url) })
  expect([code, json().stdout]).toEqual([0, 'all'])
  const keys = peer.asked.map(({ headers }) => headers['idempotency-key'])
  expect(keys).toHaveLength(2)
  expect(keys[1]).toBe(keys[0])
})

test('the client retries a command with the same Idempotency-Key if the stream breaks before any event', async () => {
  using home = new Home()
  const exit = { id: 'exec_b', status: 'exited', exit_code: 7, signal: null, reason: null }
  const events = [
    { id: '0-0', event: 'start', data: { id: 'exec_b' } },
    { id: '3-0', event: 'stdout', data: { text: 'all' } },
    { id: '3-0', event: 'exit', data: exit },
  ]
  const text = events.map(
    ({ id, event, data }) => `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`,
  )
  await using peer = await startPeer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    if (peer.asked.length > 1) return void response.end(text.join(''))
    response.write(':\n\n', () => response.destroy())
  })
  const ran = await home.run(['exec', '--', 'true'], { env: settingsFor(peer.url) })
  expect(ran).toMatchObject({ code: 7, stdout: 'all', stderr: '' })
  expect(peer.asked.map(({ line }) => line)).toEqual(Array(2).fill('POST /v1/sandboxes/sbx_a/exec'))
  expect(new Set(peer.asked.map(({ headers }) => headers['idempotency-key'])).size).toBe(1)
})

test('the client uses no proxy for localhost, even if Node is configured to use one', async () => {
  using home = new Home()
  await using proxy = await startPeer((_, response) => response.end('{}'))
  await using peer = await startPeer(fail)
  const proxied = { NODE_USE_ENV_PROXY: '1', HTTP_PROXY: proxy.url, http_proxy: proxy.url }
  await home.run(['whoami'], { env: settingsFor(peer.url, proxied) })
  expect(proxy.asked).toEqual([])
  expect(peer.asked[0]?.headers.authorization).toBe(`Bearer ${key}`)
})

test("the client uses Node's proxy settings for HTTPS, and the proxy cannot see the API key", async () => {
  using home = new Home()
  const certificate = makeCertificate()
  const file = join(home.folder, 'ca.pem')
  writeFileSync(file, certificate.cert)
  const problem = JSON.stringify({ code: 'exec_not_found', detail: 'There is none.' })
  await using peer = await startPeer((_, response) => response.writeHead(404).end(problem), certificate)
  await using proxy = await startTunnel()
  const proxied = { NODE_USE_ENV_PROXY: '1', HTTPS_PROXY: proxy.url, NODE_EXTRA_CA_CERTS: file }
  const env = settingsFor(peer.url, proxied)
  expect((await home.run(['whoami', '--json'], { env })).json().error.code).toBe('exec_not_found')

  const execId = `exec_${'b'.repeat(26)}`
  const terminal = home.open(['attach', execId, '--debug'], env)
  const path = `/v1/sandboxes/sbx_a/exec/${execId}/attach`
  await terminal.shows(`debug: GET ${path} 404 `)
  await terminal.shows('There is none.')
  expect(await terminal.ended).toBe(125)
  expect(peer.asked.map(({ line }) => line)).toEqual(['GET /v1/account', `GET ${path}`])
  for (const { headers } of peer.asked) expect(headers.authorization).toBe(`Bearer ${key}`)
  expect(proxy.asked).toEqual(Array(2).fill(`CONNECT ${new URL(peer.url).host}`))
  expect(proxy.seen()).not.toContain(key)
})

test('the client sends nothing to a server with an untrusted certificate', async () => {
  using home = new Home()
  await using peer = await startPeer(fail, makeCertificate())
  const refused = await home.run(['whoami', '--json'], { env: settingsFor(peer.url) })
  expect(refused.json().error).toMatchObject({ code: 'network', exit_code: 8 })
  expect(refused.stderr).toContain('NODE_EXTRA_CA_CERTS')
  expect(peer.asked).toEqual([])
})

test('the client reports that a server does not use TLS', async () => {
  using home = new Home()
  await using peer = await startPeer((_, response) => response.end())
  const { code, stderr } = await home.run(['whoami'], {
    env: settingsFor(peer.url.replace('http:', 'https:')),
  })
  expect(code).toBe(8)
  expect(stderr).toContain('does not support TLS')
})

test('the client prepends the path of the base address to every route', async () => {
  using home = new Home()
  await using peer = await startPeer(fail)
  await home.run(['session', 'get', 'sbx_a/b?c'], { env: settingsFor(`${peer.url}/behind/here/`) })
  expect(peer.asked[0]?.line).toBe('GET /behind/here/v1/sandboxes/sbx_a%2Fb%3Fc')
})

test('the client removes escape sequences from API responses', async () => {
  using home = new Home()
  const problem = { code: 'not_found', detail: 'no \u001b[31mred\u0007', request_id: 'req_1', status: 404 }
  await using peer = await startPeer((_, response) => response.writeHead(404).end(JSON.stringify(problem)))
  const { code, stderr } = await home.run(['whoami'], { env: settingsFor(peer.url) })
  expect(code).toBe(3)
  expect(stderr).toContain('red')
  for (const control of ['\u001b', '\u0007']) expect(stderr).not.toContain(control)
})

test('for an unknown error code from a newer service, the exit code depends on the HTTP status', async () => {
  using home = new Home()
  for (const [status, exitCode] of [
    [400, 2],
    [401, 4],
    [404, 3],
    [409, 5],
    [429, 7],
    [503, 8],
    [418, 1],
  ]) {
    const problem = { code: 'brand_new', detail: 'New.', request_id: 'req_1', status }
    const text = JSON.stringify(problem)
    await using peer = await startPeer((_, response) => response.writeHead(status!).end(text))
    expect(await home.run(['whoami'], { env: settingsFor(peer.url) })).toMatchObject({ code: exitCode })
  }
})

test('Ctrl-C during a request makes the client exit with code 130', async () => {
  using home = new Home()
  let asked = () => {}
  await using peer = await startPeer(() => asked())
  for (const args of [
    ['whoami', '--json'],
    ['exec', '--json', 'true'],
  ]) {
    const { code, json } = await home.run(args, {
      env: settingsFor(peer.url),
      onStart: (child) => {
        asked = () => void child.kill('SIGINT')
      },
    })
    expect(code).toBe(130)
    expect(json().error).toMatchObject({ code: 'interrupted', exit_code: 130 })
  }
})

test('the client exits with code 0 when the reader of a full pipe closes the pipe', async () => {
  using home = new Home()
  const pipe = join(home.folder, 'pipe')
  execFileSync('mkfifo', [pipe])
  const reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK)
  await using peer = await startPeer(async (_, response) => {
    response.writeHead(200, { 'content-length': '100000' }).write('x'.repeat(65_536))
    await sleep(300)
    // The pipe is full, so the client buffers this byte.
    response.write('y')
    await sleep(300)
    closeSync(reader)
  })
  const { code, stderr } = await runProcess(
    'sh',
    ['-c', `exec "$0" "$@" > ${pipe}`, process.execPath, clientPath, 'files', 'view', 'x', '-s', 'sbx_a'],
    home.environment(settingsFor(peer.url)),
  )
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
})

test('the client fails with ENOSPC when stdout is on a full disk', async () => {
  using home = new Home()
  const { code, stderr } = await runProcess(
    'sh',
    ['-c', '"$0" "$@" > /dev/full', process.execPath, clientPath, 'config', 'show'],
    home.environment(),
  )
  expect(stderr).toContain('ENOSPC')
  expect(code).toBe(1)
})

test('`files get` uses unpredictable temporary paths and restarts an interrupted transfer', async () => {
  using home = new Home()
  const [local, other] = [join(home.folder, 'got'), join(home.folder, 'other')]
  writeFileSync(other, 'untouched')
  await using peer = await startPeer((_, response) => {
    response.writeHead(200, { 'content-length': '5' })
    if (peer.asked.length === 1) response.write('he', () => response.destroy())
    else response.end('hello')
  })
  const { code } = await home.run(['files', 'get', 'x', local, '-s', 'sbx_a'], {
    env: settingsFor(peer.url),
    onStart: ({ pid }) => symlinkSync(other, `${local}.${pid}.part`),
  })
  expect([code, readFileSync(local, 'utf8'), readFileSync(other, 'utf8')]).toEqual([0, 'hello', 'untouched'])
  expect(readdirSync(home.folder).filter((name) => name.startsWith('got.'))).toEqual([
    expect.stringMatching(/^got\.\d+\.part$/),
  ])
})
