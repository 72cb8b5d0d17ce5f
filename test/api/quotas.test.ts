import { describe, expect, test } from 'vitest'
import type { Account, Refusal } from '../support/account.ts'
import { setClock } from '../support/clock.ts'
import { startWorld } from '../support/index.ts'
import { insertSandbox } from '../support/rows.ts'
import { shareWorld } from '../support/shared.ts'

const cap = 2
const hours = 20
const env = {
  QUOTA_CONCURRENT_SANDBOXES: String(cap),
  QUOTA_SANDBOX_HOURS_PER_MONTH: String(hours),
}
const hourMs = 3_600_000

const world = shareWorld({ apis: 4, env })

type Outcome = { id: string } | Refusal

/** Creates a sandbox without waiting for its pod. */
const create = (account: Account, api = 0): Promise<Outcome> =>
  account.call('createSandbox', { headers: { prefer: 'respond-async' }, api }).then(
    ({ body }) => body,
    (error) => error,
  )

const makeAccounts = (count: number) => Promise.all(Array.from({ length: count }, () => world.account()))

const isRefusal = (outcome: Outcome): outcome is Refusal => 'code' in outcome

const codesOf = (outcomes: Outcome[]) => new Set(outcomes.filter(isRefusal).map(({ code }) => code))

interface Span {
  account_id: string
  created_at: string
  destroyed_at: string | null
}

/** The highest number of concurrent sandboxes that any account reached. */
async function maxAtOnce(): Promise<number> {
  const spans = await world.db.query<Span & Record<string, unknown>>(
    'select account_id, created_at, destroyed_at from sandbox',
  )
  const perAccount = Object.values(Object.groupBy(spans, ({ account_id }) => account_id))
  return Math.max(0, ...perAccount.map((mine) => overlap(mine ?? [])))
}

function overlap(spans: Span[]): number {
  const steps = spans.flatMap(({ created_at, destroyed_at }) => [
    { at: Date.parse(created_at), change: 1 },
    ...(destroyed_at ? [{ at: Date.parse(destroyed_at), change: -1 }] : []),
  ])
  // Within the same millisecond, ends count before creates.
  steps.sort((a, b) => a.at - b.at || a.change - b.change)
  let now = 0
  return Math.max(...steps.map(({ change }) => (now += change)))
}

/** Uses up part of a month by inserting an ended sandbox that ran for `ms`. */
async function spend(accountId: string, until: Date, ms: number) {
  const started = new Date(until.getTime() - ms)
  const ended = { expires_at: until, destroyed_at: until, destroy_reason: 'requested', reaped_at: until }
  await insertSandbox(world, { id: accountId }, { created_at: started, ready_at: started, ...ended })
}

test('concurrent creates through several API processes never exceed the concurrent sandbox limit', async () => {
  const accounts = await makeAccounts(10)
  const outcomes = await Promise.all(
    Array.from({ length: 200 }, (_, n) => create(accounts[n % 10]!, Math.floor(n / 10) % 4)),
  )
  expect(outcomes.filter((outcome) => !isRefusal(outcome))).toHaveLength(10 * cap)
  expect(codesOf(outcomes)).toEqual(new Set(['concurrent_sandbox_limit_reached']))
  expect(await maxAtOnce()).toBe(cap)
  const ended = await world.db.query(
    'select destroy_reason, destroy_detail from sandbox where destroyed_at is not null',
  )
  expect(ended).toEqual([])
  for (const account of accounts) {
    expect((await account.call('getAccount')).body.concurrent).toEqual({ active: cap, limit: cap })
  }
})

test('interleaved creates and destroys never exceed the limit on concurrent sandboxes', async () => {
  const accounts = await makeAccounts(3)
  let refused = 0
  const churn = async (account: Account, api: number) => {
    for (let round = 0; round < 8; round++) {
      const outcome = await create(account, api)
      if (isRefusal(outcome)) {
        expect(outcome.code).toBe('concurrent_sandbox_limit_reached')
        refused++
      } else await account.call('destroySandbox', { params: { id: outcome.id }, api })
    }
  }
  await Promise.all(accounts.flatMap((account) => [0, 1, 2, 3].map((api) => churn(account, api))))
  expect(await maxAtOnce()).toBe(cap)
  expect(refused).toBeGreaterThan(0)
  // All sandboxes have ended, so a refusal would be a leak.
  for (const account of accounts) {
    for (let n = 0; n < cap; n++) expect(isRefusal(await create(account))).toBe(false)
  }
})

describe('the concurrent quota', () => {
  test('the error for a create above the limit lists the active sandboxes and suggests a retry when one expires', async () => {
    const alice = await world.account()
    const first = await alice.call('createSandbox', { body: { name: 'short', ttl_seconds: 600 } })
    const second = await alice.call('createSandbox', { body: {} })
    const refusal = await create(alice)
    if (!isRefusal(refusal)) return expect.unreachable()
    expect(refusal).toMatchObject({ status: 429, code: 'concurrent_sandbox_limit_reached' })
    expect(refusal.problem).toMatchObject({
      limit: cap,
      active: cap,
      sandboxes: [first.body, second.body].map(({ id, name, created_at, expires_at }) => ({
        id,
        name,
        created_at,
        expires_at,
      })),
    })
    expect(refusal.retryAfter).toBeGreaterThan(590)
    expect(refusal.retryAfter).toBeLessThanOrEqual(600)
    const rows = await world.db.query('select from sandbox where account_id = ?', [alice.id])
    expect(rows).toHaveLength(cap)
  })

  test('an expired sandbox no longer counts toward the limit, even if no worker has ended it yet', async () => {
    await using world = await startWorld({ env: { ...env, RECONCILE_INTERVAL_SECONDS: '3600' } })
    const alice = await world.account()
    await world.db.query('update account set concurrent_limit = 1 where id = ?', [alice.id])
    const { body } = await alice.call('createSandbox', { body: { ttl_seconds: 600 } })
    // The workers do not know this sandbox, so only the create itself can end it.
    await world.redis.flushall()
    // Creates are rejected for this reason until the worker has announced itself.
    const isFull = async () => codesOf([await create(alice)]).has('concurrent_sandbox_limit_reached')
    await world.eventually(isFull, 5_000)
    await setClock(world.db, new Date(Date.parse(body.expires_at)), { running: true })
    await world.eventually(async () => !isRefusal(await create(alice)), 6_000)
    const ended = await alice.call('getSandbox', { params: { id: body.id } })
    expect(ended.body).toMatchObject({
      state: 'destroyed',
      destroy_reason: 'expired',
      billed_seconds: expect.any(Number),
    })
    expect(ended.body.billed_seconds).toBeLessThanOrEqual(600)
    expect(Date.parse(ended.body.destroyed_at!)).toBeGreaterThanOrEqual(Date.parse(body.expires_at))
  })
})

/** The tests share one clock, which rarely moves back. */
describe('the monthly quota', () => {
  const newYear = Date.UTC(2027, 0, 1)

  test('a monthly quota set for one account takes precedence over the default quota', async () => {
    const alice = await world.account()
    await world.db.query('update account set concurrent_limit = 3, hours_limit = 0.5 where id = ?', [
      alice.id,
    ])
    const { body } = await alice.call('getAccount')
    expect([body.concurrent.limit, body.usage.limit]).toEqual([3, 0.5])
    const now = Date.UTC(2026, 11, 15)
    await setClock(world.db, new Date(now))
    await spend(alice.id, new Date(now - 1_000), 0.5 * hourMs - 1)
    expect(isRefusal(await create(alice))).toBe(false)
    await spend(alice.id, new Date(now - 1_000), 1)
    expect(codesOf([await create(alice)])).toEqual(new Set(['monthly_usage_limit_reached']))
  })

  test('accepts a create 1 ms below the monthly quota, but rejects one at the quota', async () => {
    const [under, at] = await makeAccounts(2)
    const now = new Date(newYear - 86_400_000)
    await setClock(world.db, now)
    const past = new Date(now.getTime() - 1_000)
    await spend(under!.id, past, hours * hourMs - 1)
    await spend(at!.id, past, hours * hourMs)
    const outcomes = await Promise.all(
      Array.from({ length: 200 }, (_, n) => create(n % 2 ? at! : under!, Math.floor(n / 2) % 4)),
    )
    const admitted = (account: number) => outcomes.filter((one, n) => n % 2 === account && !isRefusal(one))
    expect(admitted(0)).toHaveLength(cap)
    expect(admitted(1)).toHaveLength(0)
    expect(codesOf(outcomes.filter((_, n) => n % 2 === 1))).toEqual(new Set(['monthly_usage_limit_reached']))
    const { body } = await at!.call('getAccount')
    expect(body.usage).toMatchObject({ month: '2026-12', milliseconds: hours * hourMs, sandbox_hours: hours })
    expect(body.concurrent.active).toBe(0)
  })

  test('the error for a create above the monthly quota states the used hours and the time until the next month', async () => {
    const alice = await world.account()
    await setClock(world.db, new Date(newYear - 90_500))
    await spend(alice.id, new Date(newYear - 100_000), 21 * hourMs)
    const refusal = await create(alice)
    expect(refusal).toMatchObject({
      status: 429,
      code: 'monthly_usage_limit_reached',
      retryAfter: 91,
      problem: { limit: hours, used: 21 },
    })
  })

  test('if the monthly quota is used up, concurrent creates succeed only after the new month has started', async () => {
    const accounts = await makeAccounts(10)
    await setClock(world.db, new Date(newYear - 10_000))
    for (const { id } of accounts) await spend(id, new Date(newYear - 11_000), hours * hourMs)
    // Stops the clock first, so that some creates start in the old month even on a busy machine.
    await setClock(world.db, new Date(newYear - 700))
    const outcomes = await Promise.all(accounts.flatMap((account) => [create(account), create(account, 2)]))
    expect(codesOf(outcomes)).toEqual(new Set(['monthly_usage_limit_reached']))
    await setClock(world.db, new Date(newYear - 700), { running: true })
    const keepTrying = async (account: Account, api: number) => {
      for (const end = performance.now() + 2_500; performance.now() < end || outcomes.length <= 200; ) {
        outcomes.push(await create(account, api))
      }
    }
    await Promise.all(accounts.flatMap((account) => [0, 1].map((api) => keepTrying(account, api * 2 + 1))))
    expect(outcomes.length).toBeGreaterThan(200)
    expect(codesOf(outcomes)).toEqual(
      new Set(['monthly_usage_limit_reached', 'concurrent_sandbox_limit_reached']),
    )
    const rows = await world.db.query<{ created_at: string }>(
      `select created_at from sandbox
        where destroyed_at is null and account_id = any(?::text[])
        order by created_at`,
      [`{${accounts.map(({ id }) => id)}}`],
    )
    expect(rows).toHaveLength(10 * cap)
    expect(Date.parse(rows[0]!.created_at)).toBeGreaterThanOrEqual(newYear)
    expect(await maxAtOnce()).toBe(cap)
  })

  test('a sandbox that spans a month boundary counts toward each month only for its time in that month', async () => {
    const alice = await world.account()
    await setClock(world.db, new Date(newYear - 2_000))
    const { body } = await alice.call('createSandbox')
    await setClock(world.db, new Date(newYear - 1))
    expect((await alice.call('getAccount')).body.usage).toMatchObject({
      month: '2026-12',
      milliseconds: 1_999,
    })
    await setClock(world.db, new Date(newYear + 500))
    expect((await alice.call('getAccount')).body.usage).toMatchObject({ month: '2027-01', milliseconds: 500 })
    const destroyed = await alice.call('destroySandbox', { params: { id: body.id } })
    expect(destroyed.body.billed_seconds).toBe(2.5)
  })
})
