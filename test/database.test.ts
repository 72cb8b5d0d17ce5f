/** PostgreSQL connections: timeouts, read-only servers, limits per account, concurrent reads. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { type Database, openDatabase, requestTimeouts } from '../shared/data/database.ts'
import { only, rows } from '../shared/data/statement.ts'
import { isOutage } from '../shared/platform/problem.ts'
import { openRelay, type Relay } from './support/relay.ts'

let db: Database

beforeAll(() => {
  db = openDatabase(inject('services').postgres.url)
})
afterAll(() => db.close())

test('an idle transaction fails and releases its locks', async () => {
  const lock = 'select pg_advisory_xact_lock(4321)'
  const still = db.transaction(async (queries) => {
    await queries.query('set local idle_in_transaction_session_timeout = 300')
    await queries.query(lock)
    // Resolves when the transaction has lost its lock.
    await db.query(lock)
    await queries.query('select 1')
  })
  await expect(still).rejects.toThrow()
  expect(await db.query('select 1 as one')).toEqual([{ one: 1 }])
})

describe('failed transactions', () => {
  let relay: Relay
  let url: string

  beforeAll(async () => {
    const socket = /host=([^&]+)/.exec(inject('services').postgres.url)![1]!
    const folder = mkdtempSync(join(tmpdir(), 'sandlot-relay-'))
    const path = (directory: string) => ({ path: join(directory, '.s.PGSQL.5432') })
    relay = await openRelay(path(socket), path(folder))
    url = inject('services').postgres.url.replace(socket, folder)
    return async () => {
      await relay.close()
      rmSync(folder, { recursive: true })
    }
  })

  test('a transaction closes its connection if a statement receives no response', async () => {
    const silent = openDatabase(url, { connections: 1, timeouts: { ...requestTimeouts, answer: 1_000 } })
    const begun = Promise.withResolvers<void>()
    const ended = silent.transaction(async (queries) => {
      await queries.query('select 1')
      begun.resolve()
      relay.loseAnswers()
      await queries.query('select 2')
    })
    await begun.promise
    // Timers in one process fire in order, even under load.
    const later = new Promise((resolve) => setTimeout(resolve, 1_600, 'waited on'))
    const first = await Promise.race([ended.catch(() => 'failed'), later])
    relay.repair()
    await ended.catch(() => {})
    await silent.close()
    expect(first).toBe('failed')
  })

  test('a transaction fails with the error of the first statement that failed', async () => {
    const failing = only()('test_fail', (read) => read.selectNoFrom(sql`1 / 0`.as('quotient')))
    const later = rows()('test_later', (read) => read.selectNoFrom(sql`1`.as('one')))
    const ended = db.transaction(async (queries) => {
      const both = Promise.all([failing(queries), later(queries)])
      // Blocks the event loop, so that both errors are read together.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200)
      return await both
    })
    await expect(ended).rejects.toMatchObject({ code: '22012' })
  })

  test('a transaction fails and changes nothing if a statement that it did not await fails', async () => {
    await db.query('create table unawaited (number integer)')
    const ended = db.transaction(async (queries) => {
      await queries.query('insert into unawaited values (1)')
      queries.query('select 1 / 0').catch(() => {})
    })
    await expect(ended).rejects.toMatchObject({ code: '22012' })
    expect(await db.query('select from unawaited')).toEqual([])
    await db.transaction(async (queries) => {
      queries.query('insert into unawaited values (2)').catch(() => {})
    })
    expect(await db.query('select number from unawaited')).toEqual([{ number: 2 }])
  })

  test('a connection to a demoted primary is closed, and the next transaction succeeds', async () => {
    const one = openDatabase(inject('services').postgres.url, { connections: 1 })
    const write = () => one.transaction((queries) => queries.query('create temporary table written ()'))
    await write()
    await one.query('set default_transaction_read_only = on')
    const refused = await one
      .transaction((queries) => queries.query('create table never ()'))
      .catch((error) => error)
    expect(refused).toMatchObject({ code: '25006' })
    expect(isOutage(refused)).toBe(true)
    await write()
    await one.close()
  })

  test.each([
    { what: 'rejects its role', of: /user=\w+/, to: 'user=nobody', code: '28000' },
    { what: 'lacks the database', of: '///sandlot', to: '///nowhere', code: '3D000' },
  ])('treats a PostgreSQL server that $what as unavailable', async ({ of, to, code }) => {
    const one = openDatabase(inject('services').postgres.url.replace(of, to))
    const refused = await one.query('select 1').catch((error) => error)
    expect(refused).toMatchObject({ code })
    expect(isOutage(refused)).toBe(true)
    await one.close()
  })
})

test('each account uses at most three database connections', async () => {
  const shared = openDatabase(inject('services').postgres.url, { connections: 4 })
  const release = Promise.withResolvers<void>()
  let begun = 0
  const held = Array.from({ length: 10 }, () =>
    shared.share('alice').transaction(async (queries) => {
      begun++
      await queries.query('select 1')
      await release.promise
    }),
  )
  expect(await shared.share('bob').query('select 1 as one')).toEqual([{ one: 1 }])
  expect(begun).toBeLessThanOrEqual(3)
  release.resolve()
  await Promise.all(held)
  expect(begun).toBe(10)
  await shared.close()
})

describe('concurrent reads', () => {
  const divide = only<{ by: number }>()('test_divide', (read, { by }) =>
    read.selectNoFrom([
      sql<number>`pg_backend_pid()`.as('backend'),
      sql<number>`1 / ${by}::integer`.as('quotient'),
    ]),
  )
  const sleep = only()('test_sleep', (read) => read.selectNoFrom(sql`pg_sleep(60)`.as('slept')))

  test('share a connection, up to 32', async () => {
    const results = await Promise.all(Array.from({ length: 33 }, () => divide(db, { by: 1 })))
    const backends = results.map(({ backend }) => backend)
    expect(new Set(backends.slice(0, 32)).size).toBe(1)
    expect(backends[32]).not.toBe(backends[0])
  })

  test('return the connection to the pool', async () => {
    const one = openDatabase(inject('services').postgres.url, { connections: 1 })
    await Promise.all([divide(one, { by: 1 }), divide(one, { by: 1 })])
    expect(await one.query('select 1 as one')).toEqual([{ one: 1 }])
    await one.close()
  })

  test('do not fail because another one fails', async () => {
    const results = await Promise.allSettled([1, 0, 1].map((by) => divide(db, { by })))
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  })

  test('fail if their connection is lost, and later reads use another connection', async () => {
    const reads = Promise.allSettled([sleep(db), divide(db, { by: 1 })])
    await expect
      .poll(() =>
        db.query("select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'PgSleep'"),
      )
      .toHaveLength(1)
    expect((await reads).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(await divide(db, { by: 1 })).toMatchObject({ quotient: 1 })
  })

  test('do not wait for a statement that waits for a lock', async () => {
    await db.query('create table test_locked as select 1 as id')
    const lock = rows()('test_lock', (read) =>
      read.selectFrom(sql<{ id: number }>`test_locked`.as('test_locked')).select('id').forUpdate(),
    )
    const { waiting } = await db.transaction(async (queries) => {
      await lock(queries)
      const waiting = lock(db)
      expect(await divide(db, { by: 1 })).toMatchObject({ quotient: 1 })
      return { waiting }
    })
    expect(await waiting).toHaveLength(1)
    await db.query('drop table test_locked')
  })
})
