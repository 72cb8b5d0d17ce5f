import { expect, test } from 'vitest'
import { claimReconcilePass } from '../../shared/data/installation.ts'
import { shareDatabase } from '../support/shared.ts'

const { db } = shareDatabase()

const sweptAt = (when: string) => db.query(`update installation set swept_at = clock_timestamp() ${when}`)
const takeAtOnce = async () =>
  (await Promise.all(Array.from({ length: 8 }, () => claimReconcilePass(db, 60)))).filter(Boolean).length

test('only one of several workers gets the reconciler lock', async () => {
  expect(await takeAtOnce()).toBe(1)
  expect(await takeAtOnce()).toBe(0)
  await sweptAt(`- interval '59 seconds'`)
  expect(await takeAtOnce()).toBe(0)
  await sweptAt(`- interval '60 seconds'`)
  expect(await takeAtOnce()).toBe(1)
})

test('the reconciler continues to run after the clock is set back by an hour', async () => {
  await sweptAt(`+ interval '1 hour'`)
  expect(await takeAtOnce()).toBe(1)
  expect(await takeAtOnce()).toBe(0)
})
