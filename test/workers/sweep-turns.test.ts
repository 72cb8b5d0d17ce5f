/** Which worker sweeps, and when. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Database, openDatabase } from '../../shared/data/database.ts'
import { takeSweep } from '../../shared/data/installation.ts'
import { dropDatabase, makeDatabase, type TestDatabase } from '../support/database.ts'

let made: TestDatabase
let db: Database

beforeAll(async () => {
  made = await makeDatabase()
  db = openDatabase(made.url)
})
afterAll(async () => {
  await db.close()
  await dropDatabase(made)
})

const sweptAt = (when: string) => db.query(`update installation set swept_at = clock_timestamp() ${when}`)
const takeAtOnce = async () =>
  (await Promise.all(Array.from({ length: 8 }, () => takeSweep(db, 60)))).filter(Boolean).length

test('of workers that ask at once, one gets the sweep, and the next is due after the interval', async () => {
  expect(await takeAtOnce()).toBe(1)
  expect(await takeAtOnce()).toBe(0)
  await sweptAt(`- interval '59 seconds'`)
  expect(await takeAtOnce()).toBe(0)
  await sweptAt(`- interval '60 seconds'`)
  expect(await takeAtOnce()).toBe(1)
})

test('a clock that went back an hour does not stop the sweep', async () => {
  await sweptAt(`+ interval '1 hour'`)
  expect(await takeAtOnce()).toBe(1)
  expect(await takeAtOnce()).toBe(0)
})
