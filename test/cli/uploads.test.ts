/** Uploads whose input is slow, stays open or cannot be read. */
import { buffer } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { Home, settingsFor } from './client.ts'
import { startEarlyPeer } from './peer.ts'

const put = ['files', 'put', '-', 'x', '--json']

test('an upload is announced to the service before its first byte is available', async () => {
  using home = new Home()
  const { promise: announced, resolve } = Promise.withResolvers<void>()
  await using peer = await startEarlyPeer(async (request, response) => {
    resolve()
    const size = (await buffer(request)).length
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ path: '/x', size }))
  })
  const ran = await home.run(put, {
    env: settingsFor(peer.url),
    openInput: true,
    onStart: ({ stdin }) => void announced.then(() => stdin!.end('late')),
  })
  expect(ran.json()).toMatchObject({ size: 4 })
})

test('the client exits when an upload fails, even if stdin stays open', async () => {
  using home = new Home()
  const problem = { code: 'not_found', detail: 'No such sandbox.', request_id: 'req_1', status: 404 }
  await using peer = await startEarlyPeer((_, response) =>
    response.writeHead(404, { 'content-type': 'application/json' }).end(JSON.stringify(problem)),
  )
  const ran = await home.run(put, {
    env: settingsFor(peer.url),
    openInput: true,
    onStart: ({ stdin }) => void stdin!.write('first'),
  })
  expect(ran).toMatchObject({ code: 3, stderr: expect.stringContaining('Session sbx_a was not found.') })
})

test('a local file that cannot be read is not reported as a network problem', async () => {
  using home = new Home()
  let requests = 0
  await using peer = await startEarlyPeer((request) => {
    requests++
    request.on('error', () => {}).resume()
  })
  const ran = await home.run(['files', 'put', '/proc/self/mem', 'x', '--json'], {
    env: settingsFor(peer.url),
  })
  expect(ran.json().error).toMatchObject({
    code: 'failed',
    message: expect.stringMatching(/^\/proc\/self\/mem cannot be read: EIO/),
  })
  expect(ran.code).toBe(1)
  expect(requests).toBeLessThanOrEqual(1)
})
