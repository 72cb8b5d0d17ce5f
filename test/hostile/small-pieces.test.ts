/** Limits on pipelined requests and small chunks, which are more expensive to handle than to send. */
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { Notifications } from '../../shared/platform/notify.ts'
import { connectRedis } from '../../shared/platform/redis.ts'
import { makeChunkLimit } from '../../shared/platform/sockets.ts'
import { headOf, openRaw } from '../support/raw.ts'
import { shareSandbox } from '../support/shared.ts'

const { world, alice, params } = shareSandbox()

const chunked = (bytes: number, count: number) =>
  `${bytes.toString(16)}\r\n${'x'.repeat(bytes)}\r\n`.repeat(count)
const answerCount = (text: string, status: number) => text.split(`HTTP/1.1 ${status} `).length - 1

describe('pipelined requests', () => {
  test('every port closes a connection that has more than eight unanswered requests', async () => {
    const urls = [world.url(), world.apis[0]!.internalUrl, world.workers[0]!.internalUrl]
    for (const url of urls) {
      const flood = openRaw(url, headOf('GET', '/x').repeat(5_000))
      await flood.closed
      expect(answerCount(flood.text(), 404), url).toBeLessThanOrEqual(8)
      expect((await fetch(`${url}/healthz`)).status).toBeLessThan(500)
    }
  })

  test('of 5,000 pipelined requests, only the first eight are handled', async () => {
    const handled = async () => {
      const text = await (await fetch(`${world.apis[0]!.internalUrl}/metrics`)).text()
      const line = /^sandlot_http_request_seconds_count\{.*route="none".*status="(404|499)".*\} (\d+)$/gm
      return [...text.matchAll(line)].reduce((sum, [, , count]) => sum + Number(count), 0)
    }
    const before = await handled()
    const flood = openRaw(world.url(), headOf('GET', '/x').repeat(5_000))
    await flood.closed
    await world.eventually(async () => (await handled()) > before, 10_000)
    expect((await handled()) - before).toBeLessThanOrEqual(8)
  })

  test('each of twenty batches of four pipelined requests receives its responses in order', async () => {
    const connection = openRaw(world.url())
    const paths = ['/x', '/v1/openapi.json', '/y', '/v1/account']
    for (let round = 1; round <= 20; round++) {
      connection.socket.write(paths.map((path) => headOf('HEAD', path)).join(''))
      await world.eventually(() => connection.text().split('HTTP/1.1 ').length - 1 === 4 * round, 10_000)
    }
    const statuses = [...connection.text().matchAll(/^HTTP\/1\.1 (\d+) /gm)].map(([, status]) => status)
    expect(statuses).toEqual(Array.from({ length: 20 }, () => ['404', '200', '404', '401']).flat())
    connection.socket.destroy()
  })
})

describe('bodies in one-byte chunks', () => {
  const json = { 'content-type': 'application/json', 'transfer-encoding': 'chunked' }
  const authorized = () => ({ ...json, authorization: `Bearer ${alice.key}` })
  const pieces = chunked(1, 6_000)

  test.each([
    ['of a login', 'POST', () => '/v1/auth/login', () => json],
    ['of a file in JSON', 'POST', () => `/v1/sandboxes/${params.id}/files/create`, authorized],
    ['of a raw file', 'PUT', () => `/v1/sandboxes/${params.id}/files/raw?path=x`, authorized],
    ['of a GET request', 'GET', () => `/v1/sandboxes/${params.id}`, authorized],
  ])('closes a connection that sends the body %s in one-byte chunks', async (_, method, path, headers) => {
    const connection = openRaw(world.url(), headOf(method, path(), headers()) + pieces)
    await connection.closed
    expect(connection.text()).toBe('')
    connection.socket.destroy()
  })

  test('accepts a body of 1,000 one-byte chunks', async () => {
    const connection = openRaw(
      world.url(),
      headOf('PUT', `/v1/sandboxes/${params.id}/files/raw?path=typed`, authorized()) + chunked(1, 1_000),
    )
    connection.socket.write('0\r\n\r\n')
    await world.eventually(() => connection.text().includes('"size":1000'), 20_000)
    connection.socket.destroy()
  })

  test('stores a large upload that arrives in chunks of 1 KiB', async () => {
    const connection = openRaw(
      world.url(),
      headOf('PUT', `/v1/sandboxes/${params.id}/files/raw?path=large`, authorized()) + chunked(1024, 20_000),
    )
    connection.socket.write('0\r\n\r\n')
    await world.eventually(() => connection.text().includes(`"size":${20_000 * 1024}`), 30_000)
    connection.socket.destroy()
  })
})

describe('rejected bodies that are incomplete', () => {
  const path = `/v1/sandboxes/sbx_${'0'.repeat(26)}/files/raw?path=x`

  test('keeps the connection open after a rejection if at most 256 KiB of the body are outstanding', async () => {
    const connection = openRaw(world.url(), headOf('PUT', path, { 'content-length': 256 * 1024 }))
    await world.eventually(() => connection.text().includes('missing_credentials'), 10_000)
    connection.socket.write('x'.repeat(256 * 1024) + headOf('HEAD', '/v1/openapi.json'))
    await world.eventually(() => connection.text().includes('HTTP/1.1 200 '), 10_000)
    connection.socket.destroy()
  })

  test.each([
    ['exceeds 256 KiB', { 'content-length': 1024 * 1024 }],
    ['has an unknown length', { 'transfer-encoding': 'chunked' }],
  ])('an error response has Connection: close if the rest of the body %s', async (_, headers) => {
    const connection = openRaw(world.url(), headOf('PUT', path, headers))
    await connection.closed
    expect(connection.text()).toMatch(/^HTTP\/1\.1 401 .*\r\nConnection: close\r\n/is)
    connection.socket.destroy()
  })
})

test('a request that waits for a Redis notification stops waiting when the request is aborted', async () => {
  const subscriber = connectRedis(world.plugs.redis.url, 'retry', pino({ enabled: false }))
  const notifications = new Notifications(subscriber)
  const request = new AbortController()
  const waits = [0, 1].map(() => notifications.next('key', 'key_1', 600_000, request.signal))
  request.abort()
  await Promise.all([...waits, notifications.next('key', 'key_1', 600_000, request.signal)])
  subscriber.disconnect()
})

describe('the chunk limit', () => {
  test('allows a burst of exactly 1,024 empty chunks', () => {
    const isExceededBy = makeChunkLimit(() => 0)
    for (let piece = 0; piece < 1_024; piece++) expect(isExceededBy(0)).toBe(false)
    expect(isExceededBy(0)).toBe(true)
  })

  test('allows any number of 16-byte chunks', () => {
    const isExceededBy = makeChunkLimit(() => 0)
    for (let piece = 0; piece < 100_000; piece++) expect(isExceededBy(16)).toBe(false)
  })

  test('allows 200 one-byte chunks per second for a day, but not 400 per second for 30 seconds', () => {
    const day = 24 * 60 * 60
    let now = 0
    const slow = makeChunkLimit(() => now)
    for (let piece = 0; piece < day * 200; piece++) {
      now = piece * 5
      if (slow(1)) throw new Error(`refused after ${piece} pieces`)
    }
    now = 0
    const fast = makeChunkLimit(() => now)
    while (!fast(1)) now += 2.5
    expect(now).toBeLessThan(30_000)
  })

  test('large chunks do not raise the limit on later small chunks', () => {
    const isExceededBy = makeChunkLimit(() => 0)
    isExceededBy(1024 * 1024)
    const refused = Array.from({ length: 5_000 }).findIndex(() => isExceededBy(0))
    expect(refused).toBe(1_024)
  })
})
