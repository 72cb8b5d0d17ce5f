import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { crc32 } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import type * as z from 'zod'
import { isWellFormed, makeApiKey } from '../../api/auth/api-keys.ts'
import type { apiKeys } from '../../shared/contract/api-keys.ts'
import { type EndpointName, endpoints } from '../../shared/contract/index.ts'
import { limits } from '../../shared/contract/limits.ts'
import { type Account, codeOf, expectRefusal, type Refusal } from '../support/account.ts'
import { setClock } from '../support/clock.ts'
import { shareWorld } from '../support/shared.ts'

type Page = z.output<typeof apiKeys.listApiKeys.reply>

const world = shareWorld({ apis: 3, workers: 0 })

/** Whether the API rejects the key. A process caches a key for less than a second. */
const isRefused = (account: Account) => async () =>
  (await codeOf(account.call('getAccount'))) === 'invalid_credentials'

test('an API key has 256 random bits and is stored only as a hash', async () => {
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

test("an API key's checksum is a CRC-32 in base 62", () => {
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

test('lists API keys newest first, without the keys themselves', async () => {
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

test('every API process rejects a revoked key within a second', async () => {
  const alice = await world.account()
  const everywhere = [0, 1, 2]
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

test('a request has no effect if its API key is revoked while the body is being sent', async () => {
  const alice = await world.account()
  // Caches the key, so that the request passes authentication.
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

test('rejects an API key after its expires_at', async () => {
  const alice = await world.account()
  const expires_at = new Date(Date.now() + 600_000).toISOString()
  const { body } = await alice.call('createApiKey', { body: { expires_at } })
  expect(body.expires_at).toBe(expires_at)
  const shortLived = alice.with({ key: body.key })
  expect((await shortLived.call('getAccount')).status).toBe(200)
  await setClock(world.db, new Date(expires_at), { running: true })
  await world.eventually(isRefused(shortLived), 1_000)
  await setClock(world.db, new Date(), { running: true })
  const past = new Date(Date.now() - 1_000).toISOString()
  await expect(alice.call('createApiKey', { body: { expires_at: past } })).rejects.toMatchObject({
    code: 'invalid_request',
    problem: { errors: [{ path: 'expires_at' }] },
  })
})

test('last_used_at is updated at most once a minute, even if the key is used for many requests', async () => {
  const alice = await world.account()
  // The time of last use is written once a minute.
  const at = new Date()
  await setClock(world.db, at)
  const read = async () => {
    const [row] = await world.db.query('select xmin::text, last_used_at from api_key where id = ?', [
      alice.keyId,
    ])
    return row!
  }
  const useByOneMore = async () => {
    const process = await world.startApi()
    const api = world.apis.indexOf(process)
    await Promise.all(Array.from({ length: 50 }, () => alice.call('getAccount', { api })))
    await process.stop()
    return await read()
  }
  expect((await read()).last_used_at).toBeNull()
  const written = await useByOneMore()
  expect((await alice.call('listApiKeys')).body.data[0]!.last_used_at).toBe(at.toISOString())
  expect(await useByOneMore()).toEqual(written)
  await setClock(world.db, new Date(at.getTime() + 60_001))
  expect((await useByOneMore()).xmin).not.toBe(written.xmin)
  await setClock(world.db, new Date(), { running: true })
})

test.each(['0000-01-01T00:00:00Z', '9999-12-31T23:59:59-12:00', '1999-12-31T23:59:59Z'])(
  'rejects the invalid key expiry %s and names the field',
  async (expires_at) => {
    const alice = await world.account()
    expect(await expectRefusal(alice.call('createApiKey', { body: { expires_at } }))).toMatchObject({
      status: 400,
      code: 'invalid_request',
      problem: { errors: [{ path: 'expires_at' }] },
    })
  },
)

test.each(['2999-01-01T00:00:00.000Z', '9998-12-31T23:59:59.000Z'])(
  'accepts a key expiry far in the future: %s',
  async (expires_at) => {
    const alice = await world.account()
    expect((await alice.call('createApiKey', { body: { expires_at } })).body.expires_at).toBe(expires_at)
  },
)

test('concurrent requests never exceed the key limit', async () => {
  const alice = await world.account()
  await world.db.query(
    `insert into api_key (id, account_id, hash, last_four, expires_at, revoked_at)
     select 'key_' || lpad(n::text, 26, '0'), ?, sha256((? || n)::bytea), 'last',
            case when n % 3 = 1 then now() - interval '1 day' end,
            case when n % 3 = 2 then now() - interval '1 day' end
       from generate_series(1, ?::int) as n`,
    [alice.id, alice.id, limits.apiKeys - 2],
  )
  const live = 1 + Math.floor((limits.apiKeys - 2) / 3)
  const made = await Promise.allSettled(
    Array.from({ length: limits.apiKeys }, (_, n) => alice.call('createApiKey', { body: {}, api: n % 3 })),
  )
  expect(made.filter(({ status }) => status === 'fulfilled')).toHaveLength(limits.apiKeys - live)
  const refusal = await expectRefusal(alice.call('createApiKey', { body: {} }))
  expect(refusal).toMatchObject({ status: 409, code: 'api_key_limit_reached' })
  expect(refusal.problem.detail).toContain('Revoke a key')
  const [row] = await world.db.query('select count(*)::int as n from api_key where account_id = ?', [
    alice.id,
  ])
  expect(row!.n).toBe(limits.apiKeys)
  await alice.call('revokeApiKey', { params: { key_id: alice.keyId } })
  expect((await alice.call('createApiKey', { body: {} })).status).toBe(201)
})

describe('keys with scope run', () => {
  const runKey = async (alice: Account) => {
    const { body } = await alice.call('createApiKey', { body: { scope: 'run' } })
    expect(body.scope).toBe('run')
    return alice.with({ key: body.key })
  }
  const ids = { id: `sbx_${'0'.repeat(26)}`, exec_id: `exec_${'0'.repeat(26)}`, name: 'NAME' }
  const withKey = (Object.keys(endpoints) as EndpointName[]).filter(
    (name) => endpoints[name].credential === 'key',
  )

  test.each(withKey)('a key with scope `run` can call %s unless it requires scope `full`', async (name) => {
    const alice = await world.account()
    const agent = await runKey(alice)
    const body = endpoints[name].method === 'GET' ? {} : { body: {} }
    const answer = await agent.open(name, { params: ids, ...body } as never).catch((error: Refusal) => error)
    const { scope } = endpoints[name] as { scope: string }
    const isRefused = (answer as Refusal).code === 'scope_not_allowed'
    expect(isRefused).toBe(scope === 'full')
    if (isRefused) expect(answer).toMatchObject({ status: 403, problem: { needed: 'full', scope: 'run' } })
  })

  test('GET /v1/account with a key of scope `run` returns that scope', async () => {
    const agent = await runKey(await world.account())
    expect((await agent.call('getAccount')).body.api_key.scope).toBe('run')
  })

  test('a key with scope `run` is rejected only by the routes that change the allowlist or secrets', () => {
    const kept = withKey.filter((name) => (endpoints[name] as { scope: string }).scope === 'full')
    expect(kept).toEqual(['setAllowlist', 'clearAllowlist', 'createSecret', 'deleteSecret'])
  })
})

describe('key rotation', () => {
  test('a rotated key stays valid during the overlap period', async () => {
    const alice = await world.account()
    const { body: old } = await alice.call('createApiKey', {
      body: { name: 'ci', scope: 'run', expires_at: new Date(Date.now() + 86_400_000).toISOString() },
    })
    const { status, body: fresh } = await alice.call('rotateApiKey', {
      params: { key_id: old.id },
      body: { overlap_seconds: 600 },
    })
    expect(status).toBe(201)
    expect(fresh).toMatchObject({ name: 'ci', scope: 'run' })
    const life = (key: typeof old) => Date.parse(key.expires_at!) - Date.parse(key.created_at)
    expect(Math.abs(life(fresh) - life(old))).toBeLessThan(1_000)
    const [one, other] = [alice.with({ key: old.key }), alice.with({ key: fresh.key })]
    expect([(await one.call('getAccount')).status, (await other.call('getAccount')).status]).toEqual([
      200, 200,
    ])
    await setClock(world.db, new Date(Date.now() + 601_000), { running: true })
    await world.eventually(isRefused(one), 1_000)
    expect((await other.call('getAccount')).status).toBe(200)
    await setClock(world.db, new Date(), { running: true })
  })

  test('a rotated key can be rotated again during the overlap period', async () => {
    const alice = await world.account()
    const expires_at = new Date(Date.now() + 86_400_000).toISOString()
    const rotate = async (key_id: string) => (await alice.call('rotateApiKey', { params: { key_id } })).body
    const { body: brief } = await alice.call('createApiKey', { body: { expires_at } })
    for (const key_id of [brief.id, brief.id, (await rotate(brief.id)).id]) {
      const { expires_at: end } = await rotate(key_id)
      expect(Math.abs(Date.parse(end!) - Date.parse(expires_at))).toBeLessThan(60_000)
    }
    const { body: eternal } = await alice.call('createApiKey', { body: {} })
    for (let turn = 0; turn < 3; turn++) expect((await rotate(eternal.id)).expires_at).toBeNull()
  })

  test("rotation never extends the old key's validity", async () => {
    const alice = await world.account()
    const expires_at = new Date(Date.now() + 60_000).toISOString()
    const { body: brief } = await alice.call('createApiKey', { body: { expires_at } })
    await alice.call('rotateApiKey', { params: { key_id: brief.id } })
    const { data } = (await alice.call('listApiKeys')).body
    expect(data.find(({ id }) => id === brief.id)!.expires_at).toBe(expires_at)

    const params = { key_id: alice.keyId }
    await alice.call('rotateApiKey', { params, body: { overlap_seconds: 0 } })
    await sleep(1_000)
    expect(await expectRefusal(alice.call('getAccount'))).toMatchObject({ code: 'invalid_credentials' })
    expect(await expectRefusal(alice.call('rotateApiKey', { params }))).toMatchObject({ code: 'not_found' })
    const bob = await world.account()
    const theirs = bob.call('rotateApiKey', { params: { key_id: brief.id } })
    expect(await expectRefusal(theirs)).toMatchObject({ code: 'not_found' })
  })
})
