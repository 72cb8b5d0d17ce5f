/** The time of a rejected login does not reveal accounts, even after PASSWORD_SCRYPT_LOG_N changes. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { costOf, makeDummyHashes } from '../../api/auth/dummy-hashes.ts'
import { Passwords } from '../../api/auth/passwords.ts'
import { callAs, type Refusal } from '../support/account.ts'
import { processorTicks } from '../support/measure.ts'
import { shareWorld } from '../support/shared.ts'

// scrypt costs: about 100 ms and 3 ms per hash.
const [before, today] = [15, 10]
const world = shareWorld({ apis: 0, workers: 0 })
const startApi = async (logN: number) =>
  world.apis.indexOf(await world.startApi({ PASSWORD_SCRYPT_LOG_N: String(logN) }))

const storedCost = async (id: string) => {
  const [row] = await world.db.query<{ password_hash: Buffer }>(
    'select password_hash from account where id = ?',
    [id],
  )
  return costOf(row!.password_hash)
}

test('after the hash cost changes, failed logins still take equally long for known and unknown email addresses', async () => {
  const old = await startApi(before)
  const alice = await world.account({ api: old })
  expect(await storedCost(alice.id)).toBe(before)
  const api = await startApi(today)
  const logIn = (email: string, password: string) =>
    callAs(world, {}, 'logIn', { body: { email, password }, api })
  const costOfRefusals = async (emails: string[]) => {
    const before = processorTicks(world.apis[api]!)
    for (const email of emails)
      expect(((await logIn(email, 'wrong').catch((error) => error)) as Refusal).status).toBe(401)
    return processorTicks(world.apis[api]!) - before
  }
  // Excludes one-time costs of the first request.
  await costOfRefusals([alice.email])
  const hers = await costOfRefusals(Array(4).fill(alice.email))
  const unknown = await costOfRefusals(Array.from({ length: 4 }, () => `${randomUUID()}@example.com`))
  // A new hash takes a thirtieth of the time of an old one.
  expect(unknown / hers).toBeGreaterThan(0.6)
  expect(unknown / hers).toBeLessThan(1.6)
  expect(await storedCost(alice.id)).toBe(before)

  await logIn(alice.email, alice.password)
  expect(await storedCost(alice.id)).toBe(today)
  await logIn(alice.email, alice.password)
  const { email, password } = alice
  expect((await callAs(world, {}, 'logIn', { body: { email, password }, api: old })).status).toBe(200)
})

test('dummy hashes for unknown email addresses have the same cost distribution as real hashes', async () => {
  const passwords = new Passwords({ logN: 10, atOnce: 2 })
  const waiter = { group: '', isKnown: true }
  const hash = await passwords.hash('a password', waiter)
  await world.db.query('delete from account')
  const addresses = Array.from({ length: 400 }, (_, n) => `${n}@example.com`)
  const costs = async () => {
    const dummyHashOf = makeDummyHashes(world.db, 14)
    return await Promise.all(addresses.map(async (address) => costOf(await dummyHashOf(address))))
  }
  const add = async (count: number, cost: number) => {
    hash[7] = cost
    await world.db.query(
      `insert into account (id, email, password_hash)
       select 'acc_' || lower(email), email, ?
         from (select ? || n || '@example.org' as email from generate_series(1, ?::int) as n) as given`,
      [hash, `${cost}-`, count],
    )
  }
  expect(new Set(await costs())).toEqual(new Set([14]))
  await add(30, 9)
  await add(10, 11)
  const found = await costs()
  expect(new Set(found)).toEqual(new Set([9, 11]))
  const olds = found.filter((cost) => cost === 9).length
  expect(olds).toBeGreaterThan(240)
  expect(olds).toBeLessThan(360)
  expect(await costs()).toEqual(found)

  // After ten logins, some dummy hashes have the new cost. None changes back.
  await world.db.query(
    `update account set password_hash = set_byte(password_hash, 7, 11)
      where id in (select id from account where get_byte(password_hash, 7) = 9 limit 10)`,
  )
  const later = await costs()
  expect(later.filter((cost, n) => cost !== found[n]).length).toBeGreaterThan(0)
  expect(later.every((cost, n) => cost === 11 || found[n] === 9)).toBe(true)
  const dummyHash = await makeDummyHashes(world.db, 10)(addresses[0]!)
  expect(await passwords.matches('', dummyHash, waiter)).toBe(false)
})
