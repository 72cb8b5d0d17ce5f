/** The statements that record activity and end idle sandboxes. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Database, openDatabase, requestTimeouts } from '../../shared/data/database.ts'
import { newExecId, newSandboxId } from '../../shared/data/ids.ts'
import { findIdle, findRemainingTime } from '../../shared/data/sandbox-pods.ts'
import { markIdle, recordActivity, recordUse } from '../../shared/data/sandbox-writes.ts'
import { Activity } from '../../workers/rpc/activity.ts'
import { setClock } from '../support/clock.ts'
import { eventually } from '../support/eventually.ts'
import { shareDatabase } from '../support/shared.ts'

const { made, db } = shareDatabase()
const now = Date.parse('2026-11-21T12:00:00.000Z')
const ago = (seconds: number | null) => (seconds === null ? null : new Date(now - seconds * 1000))
/** The idle timeout of the tests' sandboxes, and the delay after it. */
const timeout = 300
const limit = timeout + 30

beforeAll(async () => {
  await db.query(`insert into account (id, email, password_hash) values ('acc_1', 'a@example.com', '')`)
  await setClock(db, new Date(now))
})

interface Sandbox {
  /** Seconds since these times. */
  ready?: number | null
  active?: number | null
  expired?: number
  idleTimeout?: number | null
}

async function insert({ ready = 1_000, active = null, expired = -1, idleTimeout = timeout }: Sandbox = {}) {
  const id = newSandboxId()
  await db.query(
    `insert into sandbox (id, account_id, image, pod_name, created_at, ready_at, active_at, expires_at, max_expires_at, idle_timeout_seconds)
     values (?, 'acc_1', 'any', ?, ?, ?, ?, ?, ?, ?)`,
    [id, id, ago(2_000), ago(ready), ago(active), ago(expired), ago(expired), idleTimeout],
  )
  return id
}

async function insertExec(
  sandboxId: string,
  { started = 900, seconds }: { started?: number; seconds?: number },
) {
  const status = seconds === undefined ? 'running' : 'exited'
  await db.query(
    `insert into exec (id, sandbox_id, worker_id, sealed_command, background, tty, status, started_at, duration_ms)
     values (?, ?, 'any', '', true, false, ?, ?, ?)`,
    [newExecId(), sandboxId, status, ago(started), seconds === undefined ? null : seconds * 1000],
  )
}

const reasonOf = async (id: string) => {
  const isFound = (await findIdle(db)).includes(id)
  const ended = await markIdle(db, id)
  expect(ended !== undefined).toBe(isFound)
  return ended?.destroy_reason
}

test.each<[string, Sandbox, string | undefined]>([
  ['ends a sandbox that has been idle since it was ready', { ready: limit }, 'idle'],
  ['keeps a sandbox that was ready less than the timeout ago', { ready: limit - 0.001 }, undefined],
  ['ends a sandbox that has been idle since its last use', { active: limit }, 'idle'],
  ['keeps a sandbox that was last used less than the timeout ago', { active: limit - 0.001 }, undefined],
  ['keeps a sandbox without an idle timeout', { idleTimeout: null }, undefined],
  ['keeps a sandbox that is starting', { ready: null }, undefined],
  ['keeps a sandbox whose unused warm pod is being replaced', { ready: null, active: 1_000 }, undefined],
  ['ends an expired sandbox as expired, not as idle', { expired: 0 }, 'expired'],
])('%s', async (_, sandbox, reason) => {
  expect(await reasonOf(await insert(sandbox))).toBe(reason)
})

test('does not end a sandbox while a command is running, or before the idle timeout after the last command', async () => {
  const running = await insert()
  await insertExec(running, { seconds: 1 })
  await insertExec(running, {})
  expect(await reasonOf(running)).toBeUndefined()
  const recent = await insert()
  await insertExec(recent, { seconds: 1 })
  await insertExec(recent, { seconds: 900 - timeout + 0.001 })
  expect(await reasonOf(recent)).toBeUndefined()
  const old = await insert()
  await insertExec(old, { seconds: 900 - timeout })
  expect(await reasonOf(old)).toBe('idle')
})

test('records activity at most once every ten seconds, and only for sandboxes with an idle timeout', async () => {
  const stale = await insert({ active: 10 })
  const recent = await insert({ active: 9.999 })
  const justReady = await insert({ ready: 9.999 })
  const unlimited = await insert({ idleTimeout: null })
  const ids = [stale, recent, justReady, unlimited]
  const isDue = async (id: string) => (await findRemainingTime(db, id))!.is_activity_due
  expect(await Promise.all(ids.map(isDue))).toEqual([true, false, false, false])
  await recordActivity(db, ids)
  const activity = await Promise.all(ids.map(async (id) => (await findRemainingTime(db, id))!.active_at))
  expect(activity).toEqual([ago(0), ago(9.999), null, null])
})

test('using an idle sandbox and ending it are mutually exclusive', async () => {
  const lock = 60_000
  await using race = await openRace({ ...requestTimeouts, lock, statement: lock, answer: lock })
  const used = await insert()
  expect(await race.inOrder(used, recordUse, markIdle)).toEqual([true, undefined])
  const ended = await insert()
  expect(await race.inOrder(ended, markIdle, recordUse)).toMatchObject([{ destroy_reason: 'idle' }, false])
})

test('recording activity does not wait for a locked row', async () => {
  const [locked, free] = [await insert(), await insert()]
  await db.transaction(async (transaction) => {
    await transaction.query('select from sandbox where id = ? for update', [locked])
    await recordActivity(db, [locked, free])
  })
  expect((await findRemainingTime(db, locked))!.active_at).toBeNull()
  expect((await findRemainingTime(db, free))!.active_at).toEqual(ago(0))
})

/** Runs two operations that wait for the same row, in the order in which they started to wait. */
async function openRace(timeouts: typeof requestTimeouts) {
  const own = openDatabase(made.url, { timeouts })
  const waiting = async (count: number) =>
    await eventually(async () => {
      const [row] = await db.query<{ count: string }>(
        `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      )
      return Number(row!.count) === count
    }, 10_000)
  type Operation<T> = (db: Database, id: string) => Promise<T>
  return {
    async inOrder<A, B>(id: string, first: Operation<A>, second: Operation<B>): Promise<[A, B]> {
      let both: Promise<[A, B]> | undefined
      await own.transaction(async (transaction) => {
        await transaction.query('select from sandbox where id = ? for update', [id])
        const one = first(own, id)
        await waiting(1)
        both = Promise.all([one, second(own, id)])
        await waiting(2)
      })
      return await both!
    },
    [Symbol.asyncDispose]: () => own.close(),
  }
}

test('a worker records activity for the sandboxes that it is using', async () => {
  const activity = new Activity()
  const [used, other] = [await insert(), await insert()]
  const end = activity.begin(used)
  const endSecond = activity.begin(used)
  activity.begin(other)()
  end()
  await activity.record(db)
  expect((await findRemainingTime(db, used))!.active_at).toEqual(ago(0))
  expect((await findRemainingTime(db, other))!.active_at).toBeNull()
  endSecond()
  await db.query('update sandbox set active_at = null where id = ?', [used])
  await activity.record(db)
  expect((await findRemainingTime(db, used))!.active_at).toBeNull()
})

test('a worker relies on activity records only after it has recorded activity for 20 s without a failure', async () => {
  const unreachable = openDatabase('postgres://127.0.0.1:1/sandlot')
  afterAll(() => unreachable.close())
  let time = 0
  const activity = new Activity(() => time)
  const recordAt = async (ms: number, to = db) => {
    time = ms
    await activity.record(to).catch(() => {})
    return activity.isSteady
  }
  expect(activity.isSteady).toBe(false)
  expect([await recordAt(0), await recordAt(19_999), await recordAt(20_000)]).toEqual([false, false, true])
  expect(await recordAt(21_000, unreachable)).toBe(false)
  expect([await recordAt(30_000), await recordAt(49_999), await recordAt(50_000)]).toEqual([
    false,
    false,
    true,
  ])
})
