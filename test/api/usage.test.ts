import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { dropWarmPod, markReady } from '../../shared/data/sandbox-writes.ts'
import { readUsage } from '../../shared/data/usage.ts'
import type { Account } from '../support/account.ts'
import { setClock } from '../support/clock.ts'
import { insertSandbox } from '../support/rows.ts'
import { shareWorld } from '../support/shared.ts'

const world = shareWorld({ workers: 0 })

/** Milliseconds since 1970. */
interface Life {
  created: number
  expires: number
  ready: number | null
  destroyed: number | null
}

const minute = 60_000
const newYear = Date.UTC(2027, 0, 1)
/** Most times are near the end of a month, where errors are likely. */
const moment = fc.oneof(
  fc.integer({ min: newYear - 40 * minute, max: newYear + 40 * minute }),
  fc.integer({ min: Date.UTC(2026, 10, 28), max: Date.UTC(2027, 1, 3) }),
  fc.constantFrom(newYear - 1, newYear, newYear + 1, Date.UTC(2026, 11, 1), Date.UTC(2027, 1, 1)),
)
const delay = fc.oneof(fc.integer({ min: 0, max: 31 * minute }), fc.constantFrom(0, 1))

const life: fc.Arbitrary<Life> = fc
  .record({
    created: moment,
    ttl: fc.integer({ min: 1, max: 1800 }),
    startMs: fc.option(delay),
    runMs: fc.option(delay),
  })
  .map(({ created, ttl, startMs, runMs }) => {
    const ready = startMs === null ? null : created + startMs
    return {
      created,
      expires: created + ttl * 1000,
      ready,
      destroyed: runMs === null ? null : (ready ?? created) + runMs,
    }
  })

/** An independent, simple implementation. */
function plainUsage(lives: Life[], month: string, now: number): number {
  const [year, number] = month.split('-').map(Number) as [number, number]
  const since = Date.UTC(year, number - 1, 1)
  const until = Math.min(Date.UTC(year, number, 1), now)
  let sum = 0
  for (const { ready, destroyed, expires } of lives) {
    if (ready === null) continue
    const end = Math.min(destroyed ?? Number.POSITIVE_INFINITY, expires, until)
    const start = Math.max(ready, since)
    if (end > start) sum += end - start
  }
  return sum
}

test("the account's usage of the current UTC month includes running sandboxes", async () => {
  const alice = await world.account()
  const bob = await world.account()
  const started = newYear - 10 * minute
  await write(alice.id, [
    { created: started, ready: started + 5, destroyed: null, expires: started + 30 * minute },
  ])
  await setClock(world.db, new Date(newYear - 1))
  const december = await alice.call('getAccount')
  expect(december.body.usage).toMatchObject({ month: '2026-12', milliseconds: 10 * minute - 6 })
  await setClock(world.db, new Date(newYear + 7))
  const january = await alice.call('getAccount')
  expect(january.body.usage).toMatchObject({
    month: '2027-01',
    milliseconds: 7,
    sandbox_hours: 7 / 3_600_000,
  })
  expect((await bob.call('getAccount')).body.usage.milliseconds).toBe(0)
})

test("a sandbox's time in a warm pod that was replaced counts toward the month in which the pod ran", async () => {
  const alice = await world.account()
  const ready = newYear - 10 * minute
  await setClock(world.db, new Date(ready))
  await write(alice.id, [{ created: ready, ready, destroyed: null, expires: newYear + 60 * minute }])
  const [row] = await world.db.query<{ id: string }>(
    `update sandbox set claim = 'unused', pod_uid = 'first' where account_id = ? returning id`,
    [alice.id],
  )
  const figures = async () => [
    (await readUsage(world.db, alice.id, '2026-12')).milliseconds,
    (await readUsage(world.db, alice.id, '2027-01')).milliseconds,
  ]
  await setClock(world.db, new Date(newYear + 5 * minute))
  expect(await figures()).toEqual([10 * minute, 5 * minute])
  expect(await dropWarmPod(world.db, row!.id, 'first')).toBe(true)
  expect(await figures()).toEqual([10 * minute, 5 * minute])

  await setClock(world.db, new Date(newYear + 7 * minute))
  await world.db.query(`update sandbox set pod_uid = 'second' where id = ?`, [row!.id])
  await markReady(world.db, row!.id, 'second')
  await setClock(world.db, new Date(newYear + 8 * minute))
  expect(await figures()).toEqual([10 * minute, 6 * minute])
  const shown = await alice.call('getSandbox', { params: { id: row!.id } })
  expect(shown.body.billed_seconds).toBe(16 * 60)
  const page = await alice.call('getUsage', { query: { month: '2026-12' } })
  expect(page.body.data).toMatchObject([{ id: row!.id, milliseconds: 10 * minute }])
})

describe('usage by sandbox', () => {
  async function readAll(alice: Account, month: string, limit: number) {
    const pages = []
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const { body } = await alice.call('getUsage', { query: { month, limit, ...(cursor && { cursor }) } })
      pages.push(body)
      cursor = body.next_cursor
    }
    return pages
  }

  test("for random histories, the usage lines on all pages add up to the month's total", async () => {
    const alice = await world.account()
    await fc.assert(
      fc.asyncProperty(
        fc.array(life, { maxLength: 12 }),
        moment,
        fc.integer({ min: 1, max: 5 }),
        async (lives, now, limit) => {
          await setClock(world.db, new Date(now))
          await write(alice.id, lives)
          const { usage: shown } = (await alice.call('getAccount')).body
          for (const month of new Set([shown.month, '2026-12', '2027-01'])) {
            const pages = await readAll(alice, month, limit)
            const lines = pages.flatMap(({ data }) => data)
            const sum = lines.reduce((sum, { milliseconds }) => sum + milliseconds, 0)
            expect(sum, month).toBe(plainUsage(lives, month, now))
            expect(new Set(lines.map(({ id }) => id)).size).toBe(lines.length)
            for (const page of pages) expect(page).toMatchObject({ month, total: { milliseconds: sum } })
            if (month === shown.month) expect(sum).toBe(shown.milliseconds)
          }
        },
      ),
      { numRuns: 60 },
    )
  })

  test('all pages of a usage list count usage up to the time of the first request', async () => {
    const alice = await world.account()
    const started = newYear + minute
    const running = { created: started, ready: started, destroyed: null, expires: started + 30 * minute }
    await write(alice.id, [running, running, running])
    await setClock(world.db, new Date(started + 1000))
    const first = (await alice.call('getUsage', { query: { limit: 2 } })).body
    await setClock(world.db, new Date(started + 5000))
    const rest = (await alice.call('getUsage', { query: { limit: 2, cursor: first.next_cursor! } })).body
    expect([first, rest].flatMap(({ data }) => data.map(({ seconds }) => seconds))).toEqual([1, 1, 1])
    expect(rest).toMatchObject({ as_of: first.as_of, total: { milliseconds: 3000 }, next_cursor: null })
  })

  test('a month without usage has no usage lines, and an invalid month is rejected', async () => {
    const alice = await world.account()
    const { body } = await alice.call('getUsage', { query: { month: '2020-02' } })
    expect(body).toMatchObject({ month: '2020-02', data: [], total: { milliseconds: 0, sandbox_hours: 0 } })
    for (const month of ['2026-13', '2026-1', '1999-01', 'now', '']) {
      await expect(alice.call('getUsage', { query: { month } })).rejects.toMatchObject({
        code: 'invalid_request',
      })
    }
    await expect(alice.call('getUsage', { query: { cursor: 'x' } })).rejects.toMatchObject({
      code: 'invalid_request',
    })
  })

  test("an account's usage does not include other accounts' usage", async () => {
    const [alice, bob] = [await world.account(), await world.account()]
    await setClock(world.db, new Date(newYear + minute))
    await write(bob.id, [{ created: newYear, ready: newYear, destroyed: null, expires: newYear + minute }])
    expect((await alice.call('getUsage')).body.data).toEqual([])
    expect((await bob.call('getUsage')).body.data).toMatchObject([{ milliseconds: minute, seconds: 60 }])
  })
})

async function write(accountId: string, lives: Life[]) {
  await world.db.query('delete from sandbox where account_id = ?', [accountId])
  const time = (ms: number | null) => (ms === null ? null : new Date(ms))
  for (const { created, expires, ready, destroyed } of lives)
    await insertSandbox(
      world,
      { id: accountId },
      {
        created_at: time(created),
        expires_at: time(expires),
        ready_at: time(ready),
        destroyed_at: time(destroyed),
        destroy_reason: destroyed === null ? null : 'requested',
      },
    )
}
