/** Large, slow and expensive request bodies, with and without a credential. */
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { limits } from '../../shared/contract/limits.ts'
import type { Account } from '../support/account.ts'
import { send } from '../support/http.ts'
import { memoryOf } from '../support/memory.ts'
import { headOf, openRaw } from '../support/raw.ts'
import { shareWorld } from '../support/shared.ts'

const world = shareWorld({ workers: 0 })
const mebibyte = 1024 * 1024
const createPath = `/v1/sandboxes/sbx_${'0'.repeat(26)}/files/create`

describe.concurrent('one API process', () => {
  test('rejects an email address that would take hours to normalize', async () => {
    const email = `a${'\u0315\u0300'.repeat(100_000)}@example.com`
    const sent = ['signup', 'login'].map((path) =>
      send(`${world.url()}/v1/auth/${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'transfer-encoding': 'chunked' },
        body: JSON.stringify({ email, password: 'a good password' }),
      }),
    )
    const startedAt = performance.now()
    for (const { status } of await Promise.all(sent)) expect(status).toBe(413)
    expect(performance.now() - startedAt).toBeLessThan(5_000)
  })

  test('200 stalled request bodies use little memory and do not block other accounts', async () => {
    const [alice, bob] = [await world.account(), await world.account()]
    const before = memoryOf(world.apis[0]!)
    const head = headOf('POST', createPath, {
      authorization: `Bearer ${alice.key}`,
      'content-type': 'application/json',
      'content-length': limits.bodyBytes,
    })
    const almostAll = Buffer.alloc(limits.bodyBytes - 1, ' ')
    const stalled = Array.from({ length: 200 }, () => {
      const connection = openRaw(world.url(), head)
      connection.socket.write(almostAll)
      return connection
    })
    await sleep(5_000)
    expect((await bob.call('getAccount')).status).toBe(200)
    await expect(largeFile(bob)).rejects.toMatchObject({ status: 404 })
    await world.eventually(() => stalled.every(({ text }) => text().includes('\r\n\r\n')), 40_000)
    const statuses = stalled.map(({ text }) => text().slice(9, 12))
    expect(statuses.filter((status) => status === '408').length).toBeGreaterThan(0)
    expect(statuses.filter((status) => status === '429').length).toBeGreaterThan(100)
    expect(statuses.every((status) => status === '408' || status === '429')).toBe(true)
    expect((memoryOf(world.apis[0]!) - before) / mebibyte).toBeLessThan(300)
    await Promise.all(stalled.map(({ closed }) => closed))
    // The memory budget is free again.
    await expect(largeFile(alice)).rejects.toMatchObject({ status: 404 })
  })

  test('a stalled request from an unauthenticated client is closed within 40 seconds', async () => {
    const json = { 'content-type': 'application/json', 'content-length': 4_000 }
    const stalled = ['signup', 'login'].flatMap((path) =>
      Array.from({ length: 20 }, () => openRaw(world.url(), `${headOf('POST', `/v1/auth/${path}`, json)}{`)),
    )
    const times = await Promise.all(stalled.map(({ closed }) => closed))
    for (const { text } of stalled) expect(text()).toMatch(/^HTTP\/1\.1 408 .*request_timeout/s)
    expect(Math.max(...times)).toBeLessThan(40_000)
  })

  test('a body that arrives slowly is accepted', async () => {
    const alice = await world.account()
    const bytes = Buffer.from(JSON.stringify({ path: 'a', content: 'x'.repeat(mebibyte - 1_000) }))
    const { socket, text } = openRaw(
      world.url(),
      headOf('POST', createPath, {
        authorization: `Bearer ${alice.key}`,
        'content-type': 'application/json',
        'content-length': bytes.length,
      }),
    )
    for (let part = 0; part < 15; part++) {
      socket.write(bytes.subarray((part * bytes.length) / 15, ((part + 1) * bytes.length) / 15))
      await sleep(1_000)
    }
    await world.eventually(() => text().startsWith('HTTP/1.1 404'), 10_000)
    socket.destroy()
  })
})

test("the limit on one account's concurrent requests does not affect other accounts", async () => {
  const [alice, bob] = [await world.account(), await world.account()]
  const head = headOf('POST', '/v1/api-keys', {
    authorization: `Bearer ${alice.token}`,
    'content-type': 'application/json',
    'content-length': 2,
  })
  const waiting = Array.from({ length: 1_200 }, () => openRaw(world.url(), head))
  const refused = () => waiting.filter(({ text }) => text().includes('"rate_limited"')).length
  await world.eventually(() => refused() > 0, 20_000)
  expect((await bob.call('getAccount')).status).toBe(200)
  for (const { socket } of waiting) socket.destroy()
  await world.eventually(() => alice.call('listApiKeys'), 10_000)
})

const largeFile = (account: Account) =>
  account.call('createFile', {
    params: { id: `sbx_${'0'.repeat(26)}` },
    body: { path: 'a', content: 'x'.repeat(mebibyte - 1_000) },
  })
