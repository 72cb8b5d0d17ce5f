/** Connections without a credential are rejected or closed, and do not affect others. */
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import type { Process } from '../support/process.ts'
import { countOpenOnOtherSide, headOf, openRaw } from '../support/raw.ts'
import { shareWorld } from '../support/shared.ts'

const world = shareWorld()

/** All plain HTTP ports of this world. */
const ports = (): [Process, string][] => {
  const [api, worker] = [world.apis[0]!, world.workers[0]!]
  return [
    [api, api.url],
    [api, api.internalUrl],
    [worker, worker.internalUrl],
  ]
}

const upgrade = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
  'sec-websocket-version': 13,
}
const attachPath = `/v1/sandboxes/sbx_${'0'.repeat(26)}/exec/exe_${'0'.repeat(26)}/attach`

describe.concurrent('unauthenticated clients', () => {
  test.each([
    ['without further data', ''],
    ['with bytes after its headers', 'x'.repeat(100_000)],
  ])('closes a rejected WebSocket %s, even if the client keeps its side open', async (_, behind) => {
    const refusals = ports().map(async ([, url]) => {
      const open = ['/attach', attachPath].flatMap((path) =>
        Array.from({ length: 20 }, () => openRaw(url, headOf('GET', path, upgrade) + behind)),
      )
      await Promise.all(open.map(({ closed }) => closed))
      for (const one of open) expect(one.text()).toMatch(/^HTTP\/1\.1 (401|404|503) /)
      await world.eventually(() => countOpenOnOtherSide(open) === 0, 20_000)
      for (const { socket } of open) socket.destroy()
    })
    await Promise.all(refusals)
  })

  test('a connection that breaks at any point does not affect other connections', async () => {
    const json = { 'content-type': 'application/json', 'content-length': 1000 }
    const beginnings = [
      '',
      'GET',
      '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
      headOf('GET', '/attach', upgrade),
      headOf('GET', attachPath, upgrade) + 'x'.repeat(100_000),
      headOf('GET', '/v1/openapi.json', upgrade),
      headOf('GET', '/v1/openapi.json').repeat(50),
      headOf('GET', '/metrics').repeat(10),
      headOf('CONNECT', 'localhost:1'),
      headOf('POST', '/v1/auth/signup', json),
      `${headOf('POST', '/v1/auth/signup', json)}{"email":`,
      `${headOf('POST', '/v1/auth/signup', { ...json, 'content-encoding': 'gzip' })}x`,
      headOf('POST', '/calls/exec', { expect: '100-continue', ...json }),
      `${headOf('POST', '/calls/exec', json)}{"x"`,
      `${headOf('PUT', '/v1/sandboxes/x/files/raw', json)}x`,
    ]
    for (const url of [...ports().map(([, url]) => url), world.workers[0]!.callsUrl]) {
      for (const pauseMs of [0, 1, 5, 20]) {
        const open = beginnings.flatMap((bytes) => Array.from({ length: 8 }, () => openRaw(url, bytes)))
        await Promise.all(open.map(({ socket }) => new Promise((resolve) => socket.once('connect', resolve))))
        await sleep(pauseMs)
        for (const { socket } of open) socket.resetAndDestroy()
      }
    }
    for (const process of [...world.apis, ...world.workers]) {
      expect((await fetch(`${process.internalUrl}/healthz`)).status, process.name).toBe(200)
    }
  })

  test('the rest of a rejected body is read for at most a few seconds', async () => {
    const body = { 'content-type': 'application/json', 'content-length': 1_000_000_000 }
    const paths: [string, string, string][] = [
      [world.url(), 'PUT', `/v1/sandboxes/sbx_${'0'.repeat(26)}/files/raw?path=x`],
      [world.url(), 'POST', '/v1/sandboxes'],
      [world.url(), 'GET', '/v1/openapi.json'],
      [world.apis[0]!.internalUrl, 'POST', '/healthz'],
      [world.workers[0]!.internalUrl, 'POST', '/nothing'],
    ]
    const open = paths.map(([url, method, path]) => openRaw(url, headOf(method, path, body)))
    const feeding = setInterval(() => {
      for (const { socket } of open) if (socket.writable) socket.write('x')
    }, 500)
    // The server ends its side with the response, and closes the connection later.
    const since = performance.now()
    const times = await Promise.all(
      open.map(async ({ socket }) => {
        await new Promise((resolve) => socket.once('close', resolve))
        return performance.now() - since
      }),
    )
    clearInterval(feeding)
    for (const [index, { text, socket }] of open.entries()) {
      expect(text(), paths[index]!.join(' ')).toMatch(/^HTTP\/1\.1 (200|401|404) /)
      expect(times[index]).toBeGreaterThan(5_000)
      socket.destroy()
    }
  })

  test('100 Continue is sent only for a body that will be accepted', async () => {
    const alice = await world.account()
    const head = (token: string) =>
      headOf('POST', '/v1/api-keys', {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        'content-length': 2,
        expect: '100-continue',
      })
    const refused = openRaw(world.url(), head('nonsense'))
    await refused.closed
    expect(refused.text()).toMatch(/^HTTP\/1\.1 401 /)
    const asking = openRaw(world.url(), head(alice.token))
    await world.eventually(() => asking.text() === 'HTTP/1.1 100 Continue\r\n\r\n', 40_000)
    asking.socket.write('{}')
    await world.eventually(() => asking.text().includes('HTTP/1.1 201 '), 40_000)
    for (const { socket } of [refused, asking]) socket.destroy()
  })

  test('a client can leave only a limited number of responses unread, and only for a limited time', async () => {
    const [alice, bob] = [await world.account(), await world.account()]
    const { body: sandbox } = await alice.call('createSandbox')
    const params = { id: sandbox.id }
    const command = 'head -c 1000000 /dev/zero'
    const { body: exec } = await alice.call('execCommand', { params, body: { command } })
    // Each byte takes six bytes of JSON.
    const ofExec = { ...params, exec_id: exec.id }
    const get = () =>
      alice.call('getExec', { params: ofExec }).then(
        ({ status }) => status,
        ({ code }) => code,
      )
    const path = `/v1/sandboxes/${params.id}/exec/${exec.id}`
    const unread = Array.from({ length: 60 }, () => {
      const connection = openRaw(world.url(), headOf('GET', path, { authorization: `Bearer ${alice.key}` }))
      connection.socket.pause()
      return connection
    })
    await world.eventually(async () => (await get()) === 'rate_limited', 19_000)
    expect((await bob.call('getAccount')).status).toBe(200)
    await world.eventually(async () => (await get()) === 200, 60_000)
    for (const { socket } of unread) socket.resume()
    const countOf = (status: number) =>
      unread.filter(({ text }) => text().startsWith(`HTTP/1.1 ${status} `)).length
    await world.eventually(() => countOf(200) + countOf(429) === unread.length, 20_000)
    // An account may buffer ten 6 MB responses. A busy machine may serve more after 30 s.
    expect(countOf(200)).toBeGreaterThan(0)
    expect(countOf(200)).toBeLessThan(unread.length / 2)
    for (const { socket } of unread) socket.destroy()
  })

  test('a client that sends the whole body before reading still receives the response', async () => {
    const body = 'x'.repeat(8 * 1024 * 1024)
    const head = headOf('PUT', '/v1/sandboxes/x/files/raw?path=x', { 'content-length': body.length })
    const { socket, text } = openRaw(world.url(), head)
    socket.pause()
    await new Promise((resolve) => socket.write(body, resolve))
    socket.resume()
    await world.eventually(() => text().includes('missing_credentials'), 40_000)
    socket.destroy()
  })
})
