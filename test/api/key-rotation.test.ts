/** Key rotation under traffic, as documented in docs/hosting.md. */
import { expect, test } from 'vitest'
import { listKeys } from '../../api/admin/keys.ts'
import { fingerprintOf, type KeyHolder, keyNames } from '../../shared/rpc/key-holders.ts'
import { type Account, signUp } from '../support/account.ts'
import { type Process, startWorld, type World } from '../support/index.ts'

const [old, fresh] = ['old-'.repeat(8), 'new-'.repeat(8)]
const rounds = [old, `${old},${fresh}`, `${fresh},${old}`, fresh]

test('no request fails while a key is rotated', async () => {
  const given = (keys: string) => ({ JWT_SECRET: keys, SECRETS_KEY: keys })
  await using world = await startWorld({
    apis: 0,
    workers: 0,
    env: { ...given(old), QUOTA_CONCURRENT_SANDBOXES: '20' },
  })
  const start = (keys: string) => Promise.all([world.startApi(given(keys)), world.startWorker(given(keys))])

  let before = await start(rounds[0]!)
  let alice = await signUp(world)
  for (const keys of rounds.slice(1)) {
    const after = await start(keys)
    const apis = [before[0], after[0]].map((api) => world.apis.indexOf(api))
    // The new process lacks the old key, so older credentials are not used from here on.
    if (keys === fresh) alice = await signUp(world, { api: apis[1]! })
    for (const [from, to] of [apis, apis.toReversed()]) await serveAcross(world, alice, from!, to!)
    await Promise.all(before.map((process) => process.stop()))
    before = after
  }
})

/** One API process signs, hashes and seals. Another one verifies. */
async function serveAcross(world: World, alice: Account, from: number, to: number) {
  const { body: session } = await alice.call('createApiKey', { body: {}, api: from })
  expect(session.key).toBeTruthy()
  const logged = await signUp(world, { api: from })
  expect((await logged.call('listApiKeys', { api: to })).status).toBe(200)

  await alice.call('createSecret', { body: { name: 'SECRET', value: 'sealed earlier' }, api: from })
  const headers = { 'idempotency-key': `${from}-${to}` }
  const create = { headers, body: { env: { GREETING: 'hello' } } }
  const { body: sandbox } = await alice.call('createSandbox', { ...create, api: from })
  expect((await alice.call('createSandbox', { ...create, api: to })).body.id).toBe(sandbox.id)

  const params = { id: sandbox.id }
  const command = 'echo $GREETING $SECRET'
  const run = { params, headers, body: { command, reveal: true } }
  const { body: ran } = await alice.call('execCommand', { ...run, api: from })
  expect(ran.stdout).toBe('hello sealed earlier\n')
  expect((await alice.call('execCommand', { ...run, api: to })).body.id).toBe(ran.id)
  const { body: list } = await alice.call('listExecs', { params, api: to })
  expect(list.data.map((one) => one.command)).toEqual([command])
  await alice.call('destroySandbox', { params, api: to })
}

test('lists the keys that each process is missing, without revealing any key', async () => {
  await using world = await startWorld({ env: { JWT_SECRET: old, SECRETS_KEY: old } })
  const told = async () => {
    const { value, text } = await listKeys(world.redis)
    return { ...(value as { data: KeyHolder[]; missing: { key: string; processes: string[] }[] }), text }
  }
  const placeOf = ({ pid }: Process) => expect.stringMatching(new RegExp(`:${pid}$`))
  await world.eventually(async () => (await told()).data.length === 2, 5_000)
  const first = await told()
  expect(first.missing).toEqual([])
  expect(first.text).toContain('No process is missing a key')
  const [api, worker] = first.data
  expect(api).toMatchObject({ kind: 'api', place: placeOf(world.apis[0]!) })
  expect(worker).toMatchObject({ kind: 'worker', place: placeOf(world.workers[0]!) })
  expect(api!.keys.JWT_SECRET).toEqual([fingerprintOf(old)])
  expect(worker!.keys.JWT_SECRET).toEqual([])
  // The API seals with the public key that belongs to the worker's private key.
  expect(api!.keys.SECRETS_KEY).toEqual(worker!.keys.SECRETS_KEY)
  expect(api!.keys.RPC_KEY).toEqual(worker!.keys.RPC_KEY)

  const appended = await world.startApi({ JWT_SECRET: `${old},${fresh}`, SECRETS_KEY: `${old},${fresh}` })
  await world.eventually(async () => (await told()).data.length === 3, 5_000)
  const { missing, text } = await told()
  expect(missing).toEqual([
    { key: 'JWT_SECRET', fingerprint: fingerprintOf(fresh), processes: [placeOf(world.apis[0]!)] },
    {
      key: 'RPC_KEY',
      fingerprint: expect.any(String),
      processes: [placeOf(world.apis[0]!), placeOf(world.workers[0]!)],
    },
  ])
  expect(text).toMatch(/^JWT_SECRET [0-9a-f]{6} is missing from \S+$/m)
  for (const name of keyNames) expect(text).toContain(name)

  const kept = await Promise.all(
    (await world.redis.keys('sandlot:keys:*')).map((key) => world.redis.get(key)),
  )
  for (const entry of kept) for (const key of [old, fresh]) expect(entry).not.toContain(key.slice(0, 8))
  await appended.stop()
  await world.eventually(async () => (await told()).data.length === 2, 1_000)
  await world.redis.set('sandlot:keys:forged', '{"kind":"api","place":"\\u001b[2J:1","keys":{}}')
  await world.redis.set('sandlot:keys:broken', 'no JSON')
  expect((await told()).data).toHaveLength(2)
})
