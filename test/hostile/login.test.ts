import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { FairQueue } from '../../api/limits/fair-queue.ts'
import type { Account } from '../support/account.ts'
import { expectDurationBelow } from '../support/eventually.ts'
import { type RawAnswer, send } from '../support/http.ts'
import { shareWorld } from '../support/shared.ts'

// A hash takes at least 0.1 s, and only one runs at a time. 90 hashes take ten seconds or more.
const world = shareWorld({
  workers: 0,
  env: {
    PASSWORD_SCRYPT_LOG_N: '15',
    PASSWORD_HASH_CONCURRENCY: '1',
    RATE_LOGIN_ACCOUNT_PER_MINUTE: '5',
  },
})

interface TimedAnswer extends RawAnswer {
  ms: number
}

async function logIn(
  { email, password }: { email: string; password: string },
  from: string,
): Promise<TimedAnswer> {
  const start = performance.now()
  const answer = await send(`${world.url()}/v1/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email, password }),
    from,
  })
  return { ...answer, ms: performance.now() - start }
}

const wrong = 'not the password'
const network = Array.from({ length: 90 }, (_, n) => `127.0.1.${n + 1}`)
const floodLogins = () =>
  network.map((from) => logIn({ email: `${randomUUID()}@example.com`, password: wrong }, from))
const statuses = (answers: TimedAnswer[]) => answers.map(({ status }) => status)

test('90 logins from 90 addresses do not delay a login from a known client', async () => {
  const alice = await world.account()
  const idle = await logIn(alice, '127.0.2.1')
  expect(idle.status).toBe(200)
  const others = floodLogins()
  // The queue is full once the first response arrives.
  await Promise.race(others)
  const loaded = await logIn(alice, '127.0.3.1')
  expect(loaded.status).toBe(200)
  // At most three hashes: the running one, one from another network, and the owner's.
  expectDurationBelow(loaded.ms, 6 * idle.ms + 1_000)
  const answers = await Promise.all(others)
  const refused = answers.filter(({ status }) => status === 503)
  expect(refused.length).toBeGreaterThan(0)
  expect(refused.every(({ headers }) => Number(headers['retry-after']) > 0)).toBe(true)
  expect(new Set(statuses(answers))).toEqual(new Set([401, 503]))
  expectDurationBelow(Math.max(...answers.map(({ ms }) => ms)), 20_000)
})

test('logins with wrong passwords are limited per email address without locking out the owner', async () => {
  const alice = await world.account()
  const home = '127.0.4.1'
  expect((await logIn(alice, home)).status).toBe(200)
  const guess = async (email: string) => {
    const answers: TimedAnswer[] = []
    for (let n = 0; n < 8; n++) answers.push(await logIn({ email, password: wrong }, `127.1.${n}.1`))
    return answers
  }
  const hers = await guess(alice.email)
  const unknown = await guess(`${randomUUID()}@example.com`)
  for (const answers of [hers, unknown]) {
    expect(statuses(answers).slice(0, 4)).toEqual([401, 401, 401, 401])
    expect(statuses(answers)).toContain(429)
  }
  const refusal = (answers: TimedAnswer[]) => {
    const { text } = answers.find(({ status }) => status === 429)!
    return { ...JSON.parse(text), request_id: '', detail: '' }
  }
  expect(refusal(hers)).toEqual(refusal(unknown))
  for (const { status, headers } of [...hers, ...unknown]) {
    if (status === 429)
      expect(headers).toMatchObject({ 'x-ratelimit-limit': '5', 'x-ratelimit-remaining': '0' })
  }
  expect((await logIn(alice, home)).status).toBe(200)
})

test("email values that imitate a rate-limit key cannot use up the login limit of the account's owner", async () => {
  const alice = await world.account()
  const home = '127.0.5.1'
  expect((await logIn(alice, home)).status).toBe(200)
  const before = await bucketsOf()
  for (const email of [`${alice.email} ${home}`, `["known","${alice.email}","${home}"]`]) {
    for (let n = 0; n < 6; n++) {
      const { status, text } = await logIn({ email, password: wrong }, `127.3.${n}.1`)
      expect({ status, code: JSON.parse(text).code }).toEqual({ status: 400, code: 'invalid_request' })
    }
  }
  // Full buckets may have expired, but no new buckets may exist.
  expect((await bucketsOf()).filter((bucket) => !before.includes(bucket))).toEqual([])
  expect((await logIn(alice, home)).status).toBe(200)
})

test('stores the last eight IP addresses from which an account logged in', async () => {
  const alice = await world.account()
  await remember(
    alice,
    Array.from({ length: 10 }, (_, n) => `127.2.${n}.1`),
  )
  const [row] = await world.db.query<{ login_addresses: string[] }>(
    'select login_addresses from account where id = ?',
    [alice.id],
  )
  expect(row!.login_addresses).toEqual(Array.from({ length: 8 }, (_, n) => `127.2.${9 - n}.1`))
})

async function remember(account: Account, addresses: string[]) {
  for (const from of addresses) {
    // Each new address takes a token from the account.
    await world.redis.del(await bucketsOf())
    expect((await logIn(account, from)).status).toBe(200)
  }
}

const bucketsOf = async () => ['none', ...(await world.redis.keys('sandlot:bucket:login_account:*'))]

test('the login queue rotates between networks and favors known clients', async () => {
  const queue = new FairQueue(1)
  const order: string[] = []
  const gate = Promise.withResolvers<void>()
  const first = queue.run({ group: 'first', isKnown: false }, () => gate.promise)
  const leave = new AbortController()
  const add = (name: string, isKnown = false, signal?: AbortSignal) =>
    queue.run({ group: name[0]!, isKnown, ...(signal && { signal }) }, async () => void order.push(name))
  const cancelled = add('a0', false, leave.signal)
  const rest = ['a1', 'a2', 'a3', 'b1', 'b2', 'c1'].map((name) => add(name))
  rest.push(add('k1', true), add('k2', true))
  leave.abort()
  await expect(cancelled).rejects.toMatchObject({ code: 'unavailable' })
  gate.resolve()
  await Promise.all([first, ...rest])
  expect(order).toEqual(['k1', 'a1', 'k2', 'b1', 'c1', 'a2', 'b2', 'a3'])
})

test('a full login queue rejects the newest logins from the network with the most logins', async () => {
  const queue = new FairQueue(1)
  const gate = Promise.withResolvers<void>()
  const first = queue.run({ group: 'first', isKnown: false }, () => gate.promise)
  const ended: string[] = []
  const add = (group: string) =>
    queue
      .run({ group, isKnown: false }, async () => 'done')
      .catch(({ code }) => code as string)
      .then((how) => void ended.push(`${group} ${how}`))
  const all = Array.from({ length: 60 }, () => add('network'))
  all.push(add('alice'), add('bob'))
  await new Promise(setImmediate)
  expect(ended).toEqual(Array.from({ length: 52 }, () => 'network unavailable'))
  gate.resolve()
  await Promise.all([first, ...all])
  expect(ended.slice(52, 55)).toEqual(['network done', 'alice done', 'bob done'])
})
