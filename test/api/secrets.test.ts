/** Secrets are set, listed, replaced and deleted. No response contains their values. */
import { expect, test } from 'vitest'
import { limits } from '../../shared/contract/limits.ts'
import { markDestroyed } from '../../shared/data/sandbox-writes.ts'
import { secretSealContext } from '../../shared/data/secrets.ts'
import { makeOpener } from '../../shared/platform/seal.ts'
import type { Account } from '../support/account.ts'
import { insertSandbox } from '../support/rows.ts'
import { shareWorld } from '../support/shared.ts'

const world = shareWorld({ workers: 0 })

const create = (account: Account, name: string, value: string, sandbox_id?: string) =>
  account.call('createSecret', { body: { name, value, ...(sandbox_id && { sandbox_id }) } })

async function namesOf(account: Account, query = {}): Promise<string[]> {
  const { body } = await account.call('listSecrets', { query })
  return body.data.map(({ name, sandbox_id }) => (sandbox_id ? `${name} of ${sandbox_id}` : name))
}

test('a secret can be created, listed without its value, and deleted', async () => {
  const alice = await world.account()
  const { status, body } = await create(alice, 'TOKEN', 'a value')
  expect(status).toBe(201)
  expect(body).toEqual({
    id: expect.stringMatching(/^sec_/),
    name: 'TOKEN',
    sandbox_id: null,
    created_at: expect.any(String),
  })
  const list = await alice.call('listSecrets')
  expect(list.body).toEqual({ data: [body], next_cursor: null })
  const remove = () => alice.call('deleteSecret', { params: { name: 'TOKEN' } })
  expect((await remove()).status).toBe(204)
  expect(await namesOf(alice)).toEqual([])
  await expect(remove()).rejects.toMatchObject({ code: 'not_found' })
})

test('a secret can have one value for the account and a different value for each sandbox', async () => {
  const alice = await world.account()
  const [first, second] = [await insertSandbox(world, alice), await insertSandbox(world, alice)]
  await create(alice, 'TOKEN', 'old')
  await create(alice, 'TOKEN', 'new')
  await create(alice, 'TOKEN', 'old', first)
  await create(alice, 'TOKEN', 'new', first)
  await create(alice, 'TOKEN', 'new', second)
  expect(await namesOf(alice)).toEqual([`TOKEN of ${second}`, `TOKEN of ${first}`, 'TOKEN'])
  expect(await namesOf(alice, { sandbox_id: first })).toEqual([`TOKEN of ${first}`])
  await alice.call('deleteSecret', { params: { name: 'TOKEN' }, query: { sandbox_id: first } })
  expect(await namesOf(alice)).toEqual([`TOKEN of ${second}`, 'TOKEN'])
  const rows = await world.db.query('select id, sealed_value from secret where account_id = ?', [alice.id])
  const opener = makeOpener(world.settings.secretsKeys)
  for (const { id, sealed_value } of rows) {
    expect(opener.open(sealed_value as Buffer, secretSealContext(id as string))).toBe('new')
  }
})

test('a value sealed for one secret cannot be opened as a different secret', async () => {
  const alice = await world.account()
  await create(alice, 'A', 'of a')
  await create(alice, 'B', 'of b')
  const [a, b] = await world.db.query<{ id: string; sealed_value: Buffer }>(
    'select id, sealed_value from secret where account_id = ? order by name',
    [alice.id],
  )
  const opener = makeOpener(world.settings.secretsKeys)
  expect(() => opener.open(a!.sealed_value, secretSealContext(b!.id))).toThrow()
})

test("an account cannot list or delete another account's secrets", async () => {
  const [alice, bob] = [await world.account(), await world.account()]
  const bobs = await insertSandbox(world, bob)
  await create(bob, 'TOKEN', 'of bob', bobs)
  await create(bob, 'TOKEN', 'of bob')
  expect(await namesOf(alice)).toEqual([])
  await expect(create(alice, 'X', 'x', bobs)).rejects.toMatchObject({ code: 'not_found' })
  await expect(alice.call('listSecrets', { query: { sandbox_id: bobs } })).rejects.toMatchObject({
    code: 'not_found',
  })
  for (const query of [{}, { sandbox_id: bobs }]) {
    const call = alice.call('deleteSecret', { params: { name: 'TOKEN' }, query })
    await expect(call).rejects.toMatchObject({ code: 'not_found' })
  }
  expect(await namesOf(bob)).toHaveLength(2)
})

test("a sandbox's secrets are deleted when the sandbox ends for any reason", async () => {
  const alice = await world.account()
  await create(alice, 'KEPT', 'value')
  const ends: ((id: string) => Promise<unknown>)[] = [
    (id) => alice.call('destroySandbox', { params: { id } }),
    (id) => markDestroyed(world.db, id, 'expired'),
    (id) => markDestroyed(world.db, id, 'pod_failed', 'OOMKilled'),
  ]
  for (const end of ends) {
    const id = await insertSandbox(world, alice)
    await create(alice, 'TOKEN', 'value', id)
    await end(id)
    expect(await namesOf(alice)).toEqual(['KEPT'])
    await expect(create(alice, 'TOKEN', 'value', id)).rejects.toMatchObject({ code: 'sandbox_destroyed' })
  }
})

test.each<[string, object, string]>([
  ['an invalid variable name', { name: 'a-b', value: 'x' }, 'name'],
  ['a name that begins with a digit', { name: '1A', value: 'x' }, 'name'],
  ['an empty name', { name: '', value: 'x' }, 'name'],
  ['an empty value', { name: 'A', value: '' }, 'value'],
  ['a NUL character', { name: 'A', value: 'a\0b' }, 'value'],
  ['half a surrogate pair', { name: 'A', value: '\ud800' }, 'value'],
  ['a value over 32 KiB', { name: 'A', value: 'é'.repeat(16 * 1024 + 1) }, 'value'],
  ['no value', { name: 'A' }, 'value'],
  ['a number as its value', { name: 'A', value: 1 }, 'value'],
])('rejects a secret with %s without showing the value in the error', async (_, body, path) => {
  const alice = await world.account()
  const refusal = await alice.call('createSecret', { body: body as never }).catch((error) => error)
  expect(refusal).toMatchObject({ code: 'invalid_request', problem: { errors: [{ path }] } })
  expect(JSON.stringify(refusal.problem)).not.toContain('éé')
  expect(await namesOf(alice)).toEqual([])
})

test("limits an account's secrets to 64 KiB in total, even when they are set concurrently", async () => {
  const alice = await world.account()
  const sandboxId = await insertSandbox(world, alice)
  const value = 'x'.repeat(8 * 1024)
  const all = Array.from({ length: 10 }, (_, at) =>
    create(alice, `S${at}`, value, at % 2 ? sandboxId : undefined),
  )
  const results = await Promise.allSettled(all)
  const refused = results.filter(({ status }) => status === 'rejected')
  expect(refused).toHaveLength(3)
  for (const { reason } of refused as PromiseRejectedResult[]) {
    expect(reason).toMatchObject({ code: 'invalid_request', problem: { errors: [{ path: 'value' }] } })
  }
  const [row] = await world.db.query('select sum(bytes) as bytes from secret where account_id = ?', [
    alice.id,
  ])
  expect(Number(row!.bytes)).toBeLessThanOrEqual(limits.secretsBytes)
  // Replacing a secret does not count its old value.
  const [taken] = (await alice.call('listSecrets')).body.data
  expect((await create(alice, taken!.name, value, taken!.sandbox_id ?? undefined)).status).toBe(201)
})

test('lists secrets in pages, newest first', async () => {
  const alice = await world.account()
  for (const name of ['A', 'B', 'C']) await create(alice, name, 'value')
  const first = await alice.call('listSecrets', { query: { limit: 2 } })
  expect(first.body.data.map(({ name }) => name)).toEqual(['C', 'B'])
  const rest = await alice.call('listSecrets', { query: { limit: 2, cursor: first.body.next_cursor! } })
  expect(rest.body).toMatchObject({ data: [{ name: 'A' }], next_cursor: null })
})
