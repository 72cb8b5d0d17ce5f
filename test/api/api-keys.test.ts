/** API keys: made, shown once, listed, revoked. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { crc32 } from 'node:zlib'
import { expect, test } from 'vitest'
import type * as z from 'zod'
import { isWellFormed, makeApiKey } from '../../api/api-keys.ts'
import type { listApiKeys } from '../../shared/contract/api-keys.ts'
import { shareWorld } from '../world/shared.ts'

type Page = z.output<typeof listApiKeys.reply>

const world = shareWorld({ apis: 3, workers: 0 })

test('a key is 256 random bits and a checksum, and is stored as a hash', async () => {
  const alice = await world.account()
  const { body } = await alice.call('createApiKey', { body: { name: ' laptop ' } })
  expect(body).toMatchObject({ name: 'laptop', expires_at: null, last_four: body.key.slice(-4) })
  expect(body.key).toMatch(/^sandlot_live_[0-9A-Za-z]{49}$/)
  const [row] = await world.db.query<{ text: string; hash: Buffer }>(
    'select api_key::text as text, hash from api_key where id = ?',
    [body.id],
  )
  expect(row!.hash).toEqual(createHash('sha256').update(body.key).digest())
  expect(row!.text).not.toContain(body.key.slice(13, 40))
})

test('the checksum is the CRC-32 of what precedes it, in base 62', () => {
  const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
  for (let round = 0; round < 200; round++) {
    const { raw } = makeApiKey()
    const checksum = [...raw.slice(-6)].reduce((sum, digit) => sum * 62 + alphabet.indexOf(digit), 0)
    expect(checksum).toBe(crc32(raw.slice(0, -6)))
    expect(isWellFormed(raw)).toBe(true)
    const at = round % raw.length
    const other = raw[at] === 'x' ? 'y' : 'x'
    expect(isWellFormed(raw.slice(0, at) + other + raw.slice(at + 1))).toBe(false)
  }
})

test('keys are listed newest first, page by page, without what opens anything', async () => {
  const alice = await world.account()
  for (const name of ['one', 'two', 'three', 'four']) await alice.call('createApiKey', { body: { name } })
  const names: (string | null)[] = []
  let cursor: string | null = ''
  while (cursor !== null) {
    const query: { limit: number; cursor?: string } = cursor === '' ? { limit: 2 } : { limit: 2, cursor }
    const { body }: { body: Page } = await alice.call('listApiKeys', { query })
    expect(body.data.length).toBeLessThanOrEqual(2)
    expect(JSON.stringify(body)).not.toContain('sandlot_live_')
    names.push(...body.data.map(({ name }) => name))
    cursor = body.next_cursor
  }
  expect(names).toEqual(['four', 'three', 'two', 'one', null])
})

test('a revoked key is dead within a second on every API process', async () => {
  const alice = await world.account()
  const everywhere = [0, 1, 2]
  // Every process has looked it up just now.
  for (const api of everywhere) expect((await alice.call('getAccount', { api })).status).toBe(200)
  await alice.call('revokeApiKey', { params: { key_id: alice.keyId } })
  await sleep(1_000)
  for (const api of everywhere) {
    await expect(alice.call('getAccount', { api })).rejects.toMatchObject({ code: 'invalid_credentials' })
  }
  expect((await alice.call('listApiKeys')).body.data).toEqual([])
  await expect(alice.call('revokeApiKey', { params: { key_id: alice.keyId } })).rejects.toMatchObject({
    code: 'not_found',
  })
})

test('a key that is revoked while a request is being sent gets nothing done by it', async () => {
  const alice = await world.account()
  // Remembered, so that it is good for the head of the request in any case.
  await alice.call('getAccount')
  const body = JSON.stringify({ name: 'LATE', value: 'a value' })
  const outgoing = request(`${world.url()}/v1/secrets`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${alice.key}`,
      'content-type': 'application/json',
      'content-length': body.length,
      expect: '100-continue',
    },
  })
  const status = new Promise<number | undefined>((resolve, reject) => {
    outgoing.on('response', (response) => resolve(response.resume().statusCode)).on('error', reject)
  })
  outgoing.flushHeaders()
  await once(outgoing, 'continue')
  outgoing.write(body.slice(0, 9))
  await alice.call('revokeApiKey', { params: { key_id: alice.keyId } })
  await sleep(1_000)
  outgoing.end(body.slice(9))
  expect(await status).toBe(401)
  expect(await world.db.query('select * from secret where account_id = ?', [alice.id])).toEqual([])
})

test('a suspended account is shut out within a second on every API process', async () => {
  const alice = await world.account()
  const everywhere = [0, 1, 2]
  for (const api of everywhere) await alice.call('getAccount', { api })
  await world.db.query('update account set suspended_at = sandlot_now() where id = ?', [alice.id])
  await sleep(1_000)
  for (const api of everywhere) {
    await expect(alice.call('getAccount', { api })).rejects.toMatchObject({
      status: 403,
      code: 'account_suspended',
    })
  }
})

test('a key ends when it said it would', async () => {
  const alice = await world.account()
  const expires_at = new Date(Date.now() + 1_500).toISOString()
  const { body } = await alice.call('createApiKey', { body: { expires_at } })
  expect(body.expires_at).toBe(expires_at)
  const shortLived = alice.with({ key: body.key })
  expect((await shortLived.call('getAccount')).status).toBe(200)
  await sleep(2_500)
  await expect(shortLived.call('getAccount')).rejects.toMatchObject({ code: 'invalid_credentials' })
  const past = new Date(Date.now() - 1_000).toISOString()
  await expect(alice.call('createApiKey', { body: { expires_at: past } })).rejects.toMatchObject({
    code: 'invalid_request',
    problem: { errors: [{ path: 'expires_at' }] },
  })
})

test('when a key was last used is written once for many requests, also when the process ends', async () => {
  const alice = await world.account()
  const process = await world.startApi()
  const api = world.apis.indexOf(process)
  const lastUsed = async () => (await alice.call('listApiKeys')).body.data[0]!.last_used_at
  const writes = async () => {
    const [row] = await world.db.query<{ xmin: string }>('select xmin::text from api_key where id = ?', [
      alice.keyId,
    ])
    return row!.xmin
  }
  expect(await lastUsed()).toBeNull()
  const before = await writes()
  await Promise.all(Array.from({ length: 50 }, () => alice.call('getAccount', { api })))
  expect(await writes()).toBe(before)
  await process.stop()
  const used = await lastUsed()
  expect(Date.now() - Date.parse(used!)).toBeLessThan(10_000)
  // Within the same minute it is not written again.
  const after = await writes()
  const another = await world.startApi()
  await alice.call('getAccount', { api: world.apis.indexOf(another) })
  await another.stop()
  expect(await writes()).toBe(after)
})
