/** The account row is locked by an operator or a frozen process. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Refusal } from '../support/account.ts'
import { shareWorld } from '../support/shared.ts'

const world = shareWorld()

test('a locked account row does not block the requests of other accounts', async () => {
  const [alice, bob] = [await world.account(), await world.account()]
  const [locked, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const lock = world.db.transaction(async (db) => {
    await db.query('set local idle_in_transaction_session_timeout = 0')
    await db.query('select from account where email = ? for update', [alice.email])
    locked.resolve()
    await release.promise
  })
  await locked.promise
  let isOver = false
  const creates = Promise.allSettled(Array.from({ length: 10 }, () => alice.call('createSandbox'))).finally(
    () => {
      isOver = true
    },
  )
  while (!isOver) {
    expect((await bob.call('listSandboxes')).status).toBe(200)
    await sleep(50)
  }
  for (const create of await creates) {
    expect((create as { reason?: Refusal }).reason).toMatchObject({ status: 503, code: 'unavailable' })
  }
  release.resolve()
  await lock
  expect((await alice.call('listSandboxes')).body.data).toEqual([])
  expect((await alice.call('createSandbox')).status).toBe(201)
})
