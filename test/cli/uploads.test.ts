/** Uploads whose input is slow, stays open or cannot be read. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { Home, settingsFor } from './client.ts'

/** Starts a service that handles requests before their bodies have arrived. */
async function startService(handle: (request: IncomingMessage, response: ServerResponse) => void) {
  const server = createServer(handle).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    env: settingsFor(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const put = ['files', 'put', '-', 'x', '--json']

test('an upload is announced to the service before its first byte is available', async () => {
  using home = new Home()
  const { promise: announced, resolve } = Promise.withResolvers<void>()
  await using service = await startService(async (request, response) => {
    resolve()
    const size = (await buffer(request)).length
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ path: '/x', size }))
  })
  const ran = await home.run(put, {
    env: service.env,
    openInput: true,
    onStart: ({ stdin }) => void announced.then(() => stdin!.end('late')),
  })
  expect(ran.json()).toMatchObject({ size: 4 })
})

test('the client exits when an upload fails, even if stdin stays open', async () => {
  using home = new Home()
  const problem = { code: 'not_found', detail: 'No such sandbox.', request_id: 'req_1', status: 404 }
  await using service = await startService((_, response) =>
    response.writeHead(404, { 'content-type': 'application/json' }).end(JSON.stringify(problem)),
  )
  const ran = await home.run(put, {
    env: service.env,
    openInput: true,
    onStart: ({ stdin }) => void stdin!.write('first'),
  })
  expect(ran).toMatchObject({ code: 3, stderr: expect.stringContaining('Session sbx_a was not found.') })
})

test('a local file that cannot be read is not reported as a network problem', async () => {
  using home = new Home()
  let requests = 0
  await using service = await startService((request) => {
    requests++
    request.on('error', () => {}).resume()
  })
  const ran = await home.run(['files', 'put', '/proc/self/mem', 'x', '--json'], { env: service.env })
  expect(ran.json().error).toMatchObject({
    code: 'failed',
    message: expect.stringMatching(/^\/proc\/self\/mem cannot be read: EIO/),
  })
  expect(ran.code).toBe(1)
  expect(requests).toBeLessThanOrEqual(1)
})

test('a value that cannot be sent in a header is a usage error', async () => {
  using home = new Home()
  await using service = await startService((_, response) => response.end('{}'))
  const keyed = ['session', 'create', '--idempotency-key', 'schlüssel', '--json']
  const ran = await home.run(keyed, { env: service.env })
  expect(ran.json().error).toMatchObject({
    code: 'usage',
    message: '"schlüssel" is not printable ASCII, so it cannot be sent as idempotency-key.',
  })
  expect(ran.code).toBe(2)
})
