/** What the connections to PostgreSQL promise. */
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { type Database, openDatabase } from '../shared/data/database.ts'

let db: Database

beforeAll(() => {
  db = openDatabase(inject('services').postgres.url)
})
afterAll(() => db.close())

test('a transaction that stands still gives its locks back, and fails', async () => {
  const lock = 'select pg_advisory_xact_lock(4321)'
  const still = db.transaction(async (queries) => {
    await queries.query('set local idle_in_transaction_session_timeout = 300')
    await queries.query(lock)
    // Resolves when the transaction around it has lost its lock.
    await db.query(lock)
    await queries.query('select 1')
  })
  await expect(still).rejects.toThrow()
  expect(await db.query('select 1 as one')).toEqual([{ one: 1 }])
})

test('ten seconds are long enough to stand still', async () => {
  expect(await db.query('show idle_in_transaction_session_timeout')).toEqual([
    { idle_in_transaction_session_timeout: '10s' },
  ])
})
