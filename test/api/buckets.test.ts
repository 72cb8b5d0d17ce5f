import { describe, expect, test } from 'vitest'
import { Buckets } from '../../api/limits/rate-limit.ts'
import { readPage } from '../../scripts/docs.ts'
import { type EndpointName, endpoints } from '../../shared/contract/index.ts'
import { newExecId, newSandboxId } from '../../shared/data/ids.ts'
import { TokenBuckets } from '../../shared/lib/token-buckets.ts'
import { openContext } from '../../shared/platform/context.ts'
import type { Problem } from '../../shared/platform/problem.ts'
import { type Account, codeOf, expectRefusal, type Refusal } from '../support/account.ts'
import { moveClockOfRedis } from '../support/clock.ts'
import { send } from '../support/http.ts'
import { shareWorld } from '../support/shared.ts'

const limits = { ops: 10, lifecycle: 5, signup: 4, login: 6 }
const world = shareWorld({
  apis: 4,
  workers: 0,
  env: {
    RATE_SANDBOX_OPS_PER_MINUTE: String(limits.ops),
    RATE_SANDBOX_LIFECYCLE_PER_MINUTE: String(limits.lifecycle),
    RATE_SIGNUP_PER_MINUTE: '100000',
    RATE_LOGIN_PER_MINUTE: '100000',
    RATE_MCP_PER_MINUTE: '50',
    RATE_READS_PER_MINUTE: '60',
    RATE_CHANGES_PER_MINUTE: '70',
  },
})

interface Outcome {
  status: number
  limit: number
  remaining: number
  retryAfter: number
}

/** Requests an unknown sandbox, which takes one token. */
async function operate(account: Account, api: number): Promise<Outcome> {
  return outcomeOf(account.call('viewFile', { params: { id: newSandboxId() }, query: { path: 'a' }, api }))
}

async function destroy(account: Account, api: number): Promise<Outcome> {
  return outcomeOf(account.call('destroySandbox', { params: { id: newSandboxId() }, api }))
}

async function outcomeOf(call: Promise<unknown>): Promise<Outcome> {
  const { status, headers, retryAfter } = await expectRefusal(call)
  return {
    status,
    limit: Number(headers.get('x-ratelimit-limit')),
    remaining: Number(headers.get('x-ratelimit-remaining')),
    retryAfter,
  }
}

const allowed = (outcomes: Outcome[]) => outcomes.filter(({ status }) => status !== 429)

const refilled = (limit: number, ms: number) => Math.floor((ms * limit) / 60_000)

test('each API process has its own rate-limit buckets, one for read requests and one for change requests', async () => {
  const alice = await world.account()
  const strict = await world.startApi({ RATE_READS_PER_MINUTE: '3', RATE_CHANGES_PER_MINUTE: '1' })
  const api = world.apis.indexOf(strict)
  const list = (api: number) => codeOf(alice.call('listSandboxes', { api }))
  for (let n = 0; n < 3; n++) expect(await list(api)).toBe('success')
  expect(await list(api)).toBe('rate_limited')
  expect(await list(0)).toBe('success')
  expect((await alice.call('clearAllowlist', { api })).status).toBe(204)
  const refusal = await expectRefusal(alice.call('clearAllowlist', { api }))
  expect(refusal).toMatchObject({ status: 429, problem: { bucket: 'changes' } })
  expect(refusal.retryAfter).toBeGreaterThan(50)
  const words = 'Each API process counts separately, so N processes allow N times as many requests.'
  const page = readPage('docs/settings.md').split('\n')
  for (const name of ['RATE_READS_PER_MINUTE', 'RATE_CHANGES_PER_MINUTE']) {
    expect(page.find((line) => line.includes(name))).toContain(words)
    expect(readPage('docs/hosting.md').replaceAll('\n', ' ')).toMatch(new RegExp(`N times .*${name}`))
  }
})

test('exactly as many concurrent requests succeed as the bucket has tokens', async () => {
  const alice = await world.account()
  const start = performance.now()
  const outcomes = await Promise.all(Array.from({ length: 100 }, (_, n) => operate(alice, n % 4)))
  const late = refilled(limits.ops, performance.now() - start)
  const passed = allowed(outcomes)
  expect(passed.length).toBeGreaterThanOrEqual(limits.ops)
  expect(passed.length).toBeLessThanOrEqual(limits.ops + late)
  if (late === 0) {
    const remaining = passed.map((outcome) => outcome.remaining).sort((a, b) => a - b)
    expect(remaining).toEqual(Array.from({ length: limits.ops }, (_, n) => n))
  }
  expect(new Set(passed.map(({ limit }) => limit))).toEqual(new Set([limits.ops]))
  for (const { retryAfter } of outcomes.filter(({ status }) => status === 429)) {
    expect(retryAfter).toBeGreaterThanOrEqual(1)
    expect(retryAfter).toBeLessThanOrEqual(60 / limits.ops)
  }
})

test('after the Retry-After delay, exactly one more request succeeds', async () => {
  const alice = await world.account()
  // One token per minute, so that only the moved clock refills the bucket.
  await world.db.query('update account set sandbox_ops_per_minute = 1 where id = ?', [alice.id])
  expect((await operate(alice, 0)).status).toBe(404)
  const { status, retryAfter } = await operate(alice, 1)
  expect(status).toBe(429)
  await moveClockOfRedis(world.redis, retryAfter * 1_000)
  const outcomes = await Promise.all([0, 1, 2, 3].map((api) => operate(alice, api)))
  expect(allowed(outcomes)).toHaveLength(1)
})

test('all keys of an account share one rate-limit bucket, separate from those of other accounts', async () => {
  const alice = await world.account()
  const bob = await world.account()
  const second = await alice.withNewKey()
  for (let n = 0; n < limits.lifecycle; n++) {
    expect(await destroy(n % 2 ? alice : second, n % 4)).toMatchObject({
      status: 404,
      limit: limits.lifecycle,
      remaining: limits.lifecycle - 1 - n,
    })
  }
  expect((await destroy(alice, 0)).status).toBe(429)
  expect((await destroy(second, 1)).status).toBe(429)
  expect(await destroy(bob, 0)).toMatchObject({ status: 404, remaining: limits.lifecycle - 1 })
})

test('commands and file requests share a rate-limit bucket, as do creates and destroys', async () => {
  const alice = await world.account()
  const id = newSandboxId()
  const before = await operate(alice, 0)
  const exec = await outcomeOf(alice.call('execCommand', { params: { id }, body: { command: 'true' } }))
  expect(exec).toMatchObject({ limit: limits.ops, remaining: before.remaining - 1 })
  const create = await alice.call('createSandbox', { body: { ttl_seconds: 99_999 } }).catch((error) => error)
  expect(create.status).toBe(400)
  expect(create.headers.get('x-ratelimit-remaining')).toBe(String(limits.lifecycle - 1))
})

const ids = { id: newSandboxId(), key_id: `key_${'0'.repeat(26)}`, exec_id: newExecId(), name: 'NAME' }

test.each(Object.keys(endpoints) as EndpointName[])(
  'a request to %s counts against the rate-limit bucket named in the contract',
  async (name) => {
    const alice = await world.account()
    const answer = await alice
      .open(name, {
        params: ids,
        ...(endpoints[name].method === 'GET' ? {} : { body: {} }),
        headers: { accept: 'application/json' },
      } as never)
      .catch((error: Refusal) => error)
    const limit = Number(answer.headers.get('x-ratelimit-limit'))
    expect(limit).toBe(world.settings.rates[endpoints[name].bucket])
    expect(Number(answer.headers.get('x-ratelimit-remaining'))).toBeLessThan(limit)
  },
)

test('in-process rate-limit buckets refill steadily and are evicted in least-recently-used order', () => {
  let now = 0
  const buckets = new TokenBuckets({ perSecond: 1, burst: 60 }, () => now)
  const take = (owner = 'a') => buckets.take(owner)
  for (let left = 59; left >= 0; left--) expect(take()).toEqual({ remaining: left })
  expect(take()).toEqual({ waitMs: 1000 })
  now = 999
  expect(take()).toEqual({ waitMs: 1 })
  now = 1000
  expect(take()).toEqual({ remaining: 0 })
  now = 10_000_000
  expect(take()).toEqual({ remaining: 59 })
  for (let n = 0; n < 9_999; n++) take(`owner ${n}`)
  expect(take()).toEqual({ remaining: 58 })
  for (let n = 0; n < 10_000; n++) take(`another ${n}`)
  expect(take()).toEqual({ remaining: 59 })
})

test('a request with invalid credentials does not consume a rate limit token', async () => {
  const alice = await world.account()
  const stranger = alice.with({ key: alice.token })
  for (let n = 0; n < limits.ops; n++) await operate(stranger, 0)
  expect(await operate(alice, 0)).toMatchObject({ status: 404, remaining: limits.ops - 1 })
})

describe('buckets per address', () => {
  const post = (path: string, body: string, api: number, from: string, forwarded?: string) =>
    send(`${world.url(api)}/v1/auth/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(forwarded && { 'x-forwarded-for': forwarded }) },
      body,
      from,
    })
  /** An invalid sign-up gets 400, but takes a token. */
  const signUp = async (api: number, from: string, forwarded?: string) =>
    (await post('signup', '{}', api, from, forwarded)).status
  const startStrict = async (env: Record<string, string>) =>
    world.apis.indexOf(await world.startApi({ RATE_SIGNUP_PER_MINUTE: '3', ...env }))
  const expectLimited = async (api: number, from: string, forwarded: string[]) => {
    const statuses = []
    for (const each of forwarded) statuses.push(await signUp(api, from, each))
    expect(statuses).toEqual([400, 400, 400, ...forwarded.slice(3).map(() => 429)])
  }

  test('without a trusted proxy, limits sign-ups per peer address and ignores X-Forwarded-For', async () => {
    const api = await startStrict({})
    const first = await post('signup', '{}', api, '127.0.0.2')
    expect(first.headers).toMatchObject({ 'x-ratelimit-limit': '3', 'x-ratelimit-remaining': '2' })
    for (const client of ['203.0.113.7', '203.0.113.8'])
      expect(await signUp(api, '127.0.0.2', client)).toBe(400)
    const refused = await post('signup', '{}', api, '127.0.0.2', '203.0.113.9')
    expect(refused.status).toBe(429)
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
    expect(await signUp(api, '127.0.0.3')).toBe(400)
  })

  test('behind a trusted proxy, limits sign-ups per client address that the proxy reports', async () => {
    const api = await startStrict({ TRUSTED_PROXIES: '127.0.0.4, 10.0.0.0/8, 2001:db8:ffff::/48' })
    const proxy = '127.0.0.4'
    const client = '198.51.100.1'
    // The client sent the addresses further to the left, so they are ignored.
    const forged = `203.0.113.99, ${client}`
    await expectLimited(api, proxy, [client, client, client, client, forged, `${client}, 10.1.2.3`])
    expect(await signUp(api, proxy, '198.51.100.2')).toBe(400)
    // Only the proxy may report addresses.
    await expectLimited(api, '127.0.0.5', ['198.51.100.3', '198.51.100.4', '198.51.100.5', '198.51.100.6'])
    // An IPv6 client is identified by its /64 prefix.
    const ofOne = ['2001:db8::1', '2001:db8::ffff:1', '2001:DB8:0:0:1:2:3:4', '2001:db8::2']
    await expectLimited(api, proxy, ofOne)
    expect(await signUp(api, proxy, '2001:db8:0:1::1')).toBe(400)
    const mapped = ['::ffff:198.51.100.77', '[::ffff:198.51.100.77]:443']
    await expectLimited(api, proxy, ['198.51.100.77', '198.51.100.77', '198.51.100.77', ...mapped])
    for (const ported of ['203.0.113.1', '[2001:db8:1::1]']) {
      const viaProxies = [`${ported}:1002, 10.1.2.3:80`, `${ported}:3, [2001:db8:ffff::1]:80`]
      await expectLimited(api, proxy, [`${ported}:1001`, ...viaProxies, ported])
    }
    for (const other of ['203.0.113.2:1001', '[2001:db8:2::1]:1001'])
      expect(await signUp(api, proxy, other)).toBe(400)
  })

  test('logins and sign-ups count against different rate-limit buckets', async () => {
    const api = await startStrict({ RATE_LOGIN_PER_MINUTE: '2' })
    const body = '{"email":"nobody@example.com","password":"not the password"}'
    const logIn = async () => (await post('login', body, api, '127.0.0.7')).status
    await expectLimited(api, '127.0.0.7', ['', '', '', ''])
    expect([await logIn(), await logIn(), await logIn()]).toEqual([401, 401, 429])
  })
})

describe('buckets in Redis', () => {
  async function withBuckets(use: (buckets: Buckets) => Promise<void>) {
    const context = openContext('api', { ...world.settings, logLevel: 'silent' })
    await new Promise((resolve) => context.redis.once('ready', resolve))
    await use(new Buckets(context)).finally(() => context.close())
  }
  const keyOf = (owner: string) => `sandlot:bucket:sandbox_ops:${owner}`
  const refusalOf = async (taking: Promise<unknown>) => (await expectRefusal(taking)) as unknown as Problem

  test("returns the correct Retry-After delay after a bucket's limit is lowered", async () => {
    await withBuckets(async (buckets) => {
      const take = (limit: number) => buckets.take('sandbox_ops', 'lowered', limit)
      for (let n = 0; n < 60; n++) await take(60)
      const { retryAfterSeconds = 0 } = await refusalOf(take(1))
      expect(retryAfterSeconds).toBeGreaterThan(0)
      expect(retryAfterSeconds).toBeLessThanOrEqual(60)
      const [missing, us] = (await world.redis.get(keyOf('lowered')))!.split(' ')
      await world.redis.set(keyOf('lowered'), `${missing} ${Number(us) - retryAfterSeconds * 1e6}`)
      expect(await take(1)).toMatchObject({ limit: 1, remaining: 0 })
    })
  })

  test('rate-limit buckets still refill after the Redis clock steps back', async () => {
    await withBuckets(async (buckets) => {
      const take = () => buckets.take('sandbox_ops', 'back', 60)
      // An empty bucket whose time is an hour in the future.
      const [seconds] = await world.redis.time()
      await world.redis.set(keyOf('back'), `${60 * 60_000_000} ${(Number(seconds) + 3_600) * 1e6}`)
      expect(await refusalOf(take())).toMatchObject({ code: 'rate_limited', retryAfterSeconds: 1 })
      await world.eventually(take, 1_500)
    })
  })

  test.each([1, 7, 60, 120, 999])(
    'a bucket with a limit of %i per minute holds that many tokens and refills',
    (limit) =>
      withBuckets(async (buckets) => {
        const owner = `owner-${limit}`
        const drain = async () => {
          let taken = 0
          while ((await codeOf(buckets.take('sandbox_ops', owner, limit))) === 'success') taken++
          return taken
        }
        const start = performance.now()
        const first = await drain()
        const movedMs = 1_500
        await moveClockOfRedis(world.redis, movedMs)
        const all = first + (await drain())
        const ms = performance.now() - start + movedMs
        expect(first).toBeGreaterThanOrEqual(limit)
        expect(all).toBeLessThanOrEqual(limit + refilled(limit, ms))
        // The bucket was never full, so no refilled token was lost.
        expect(all).toBeGreaterThanOrEqual(limit + refilled(limit, movedMs))
        // An unused bucket expires when it is full again.
        const ttl = await world.redis.pttl(keyOf(owner))
        expect(ttl).toBeGreaterThan(0)
        expect(ttl).toBeLessThanOrEqual(60_000)
      }),
  )
})
