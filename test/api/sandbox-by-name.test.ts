/** PUT of a sandbox by its name. */
import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { markDestroyed } from '../../shared/data/sandbox-writes.ts'
import { isHashOf } from '../../shared/platform/request-hash.ts'
import { type Account, type CallOptions, expectRefusal } from '../support/account.ts'
import { describeOnBothDriversAtOnce } from '../support/drivers.ts'
import { startWorld } from '../support/index.ts'
import { shareSandbox, shareWorld } from '../support/shared.ts'

type Body = NonNullable<CallOptions<'getOrCreateSandbox'>['body']>

const getOrCreate = (
  account: Account,
  name: string,
  body?: Body,
  options: Omit<CallOptions<'getOrCreateSandbox'>, 'params' | 'body'> = {},
) => account.call('getOrCreateSandbox', { params: { name }, ...(body && { body }), ...options })

const asynchronously = { headers: { prefer: 'respond-async' } }

const listNames = async (account: Account) =>
  (await account.call('listSandboxes')).body.data.map(({ name }) => name)

describeOnBothDriversAtOnce('a sandbox by name', (driver) => {
  const env = { QUOTA_CONCURRENT_SANDBOXES: '10', SANDBOX_IMAGES: 'other:1' }
  const { world, alice, params, sh } = shareSandbox({ driver, apis: 2, env })

  test('the first get-or-create request for a name creates a sandbox, and later requests return that sandbox', async () => {
    const bob = await world.account()
    const body = { env: { GREETING: 'hello', B: 'b' }, metadata: { a: 'b' }, ttl_seconds: 600 }
    const first = await getOrCreate(bob, ' web ', body)
    expect(first.status).toBe(201)
    expect(first.headers.get('location')).toBe(`/v1/sandboxes/${first.body.id}`)
    expect(first.body).toMatchObject({ state: 'active', name: 'web', metadata: { a: 'b' } })
    const again = await getOrCreate(bob, 'web', { env: { B: 'b', GREETING: 'hello' } }, { api: 1 })
    expect(again.status).toBe(200)
    expect(again.headers.get('location')).toBe(`/v1/sandboxes/${first.body.id}`)
    expect(again.body).toEqual({
      ...first.body,
      billed_seconds: expect.any(Number),
      timings: expect.anything(),
    })
    const one = { params: { id: first.body.id } }
    const ran = await bob.call('execCommand', { ...one, body: { command: 'echo $GREETING' } })
    expect(ran.body.stdout).toBe('hello\n')
    await bob.call('destroySandbox', one)
  })

  test('concurrent get-or-create requests to two API processes return the same sandbox', async () => {
    const bob = await world.account()
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => getOrCreate(bob, 'one', {}, { api: n % 2 })),
    )
    const [{ body }] = answers as [(typeof answers)[0]]
    expect(new Set(answers.map((answer) => answer.body.id))).toEqual(new Set([body.id]))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(19)
    expect(await listNames(bob)).toEqual(['one'])
    await bob.call('destroySandbox', { params: { id: body.id } })
  })

  test('a get-or-create request fails and changes nothing if the sandbox has a different image or environment', async () => {
    await alice.call('updateSandbox', { params, body: { name: 'shared' } })
    const different: [Body, string[], string][] = [
      [{ image: 'other:1' }, ['image'], 'has a different image.'],
      [{ env: { TOKEN: 'a value' } }, ['env'], 'has a different environment.'],
      [
        { image: 'other:1', env: { TOKEN: 'a value' } },
        ['image', 'env'],
        'a different image and environment.',
      ],
    ]
    for (const [body, differs, words] of different) {
      const { status, code, problem } = await expectRefusal(getOrCreate(alice, 'shared', body))
      expect([status, code]).toEqual([409, 'sandbox_mismatch'])
      expect(problem).toMatchObject({ sandbox_id: params.id, differs })
      expect(problem.detail).toContain(words)
      expect(JSON.stringify(problem)).not.toMatch(/TOKEN|a value/)
    }
    const { image } = (await alice.call('getSandbox', { params })).body
    for (const body of [undefined, {}, { image }, { env: {} }])
      expect((await getOrCreate(alice, 'shared', body)).body.id).toBe(params.id)
    expect(await listNames(alice)).toEqual(['shared'])
    expect((await sh('echo ready')).stdout).toBe('ready\n')
  })
})

const world = shareWorld({ env: { QUOTA_CONCURRENT_SANDBOXES: '10', SANDBOX_MAX_SECONDS: '1800' } })

test("a get-or-create request neither compares nor changes an existing sandbox's lifetime and metadata", async () => {
  const alice = await world.account()
  const { body } = await getOrCreate(alice, 'web', { metadata: { a: '1' }, ttl_seconds: 600 })
  const again = await getOrCreate(alice, 'web', { metadata: { a: '2' }, ttl_seconds: 60 })
  expect(again.body).toMatchObject({ id: body.id, metadata: { a: '1' }, expires_at: body.expires_at })
  const refused = await expectRefusal(getOrCreate(alice, 'web', { ttl_seconds: 1801 }))
  expect(refused.problem).toMatchObject({ code: 'invalid_request', errors: [{ path: 'ttl_seconds' }] })
})

test('a get-or-create request never returns a destroyed or expired sandbox', async () => {
  const alice = await world.account()
  const first = (await getOrCreate(alice, 'web')).body
  await alice.call('destroySandbox', { params: { id: first.id } })
  const second = (await getOrCreate(alice, 'web', { env: { A: 'a' } })).body
  await world.db.query('update sandbox set expires_at = sandlot_now() where id = ?', [second.id])
  const third = await getOrCreate(alice, 'web')
  expect(third.status).toBe(201)
  expect(new Set([first.id, second.id, third.body.id]).size).toBe(3)
})

describe('while no worker ends expired sandboxes', () => {
  const slow = shareWorld({ env: { RECONCILE_INTERVAL_SECONDS: '3600' } })
  const expire = async (id: string) =>
    slow.db.query('update sandbox set expires_at = sandlot_now() where id = ?', [id])

  test('a get-or-create request that returns an existing sandbox also deletes the pods of expired sandboxes', async () => {
    const alice = await slow.account()
    await getOrCreate(alice, 'web')
    const { id } = (await getOrCreate(alice, 'old')).body
    await expire(id)
    expect((await getOrCreate(alice, 'web')).status).toBe(200)
    await slow.eventually(async () => {
      const [row] = await slow.db.query('select reaped_at from sandbox where id = ?', [id])
      return row!.reaped_at !== null
    }, 10_000)
  })

  test('a get-or-create request creates a new sandbox while a worker is still ending the expired one', async () => {
    const alice = await slow.account()
    const { id } = (await getOrCreate(alice, 'web', { env: { A: 'a' } })).body
    await expire(id)
    const created = await slow.db.transaction(async (db) => {
      await markDestroyed(db, id, 'expired')
      const creating = getOrCreate(alice, 'web')
      creating.catch(() => {})
      const waiting = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`
      await slow.eventually(async () => (await slow.db.query(waiting)).length > 0, 5_000)
      return { creating }
    })
    expect((await created.creating).status).toBe(201)
  })
})

test('when quotas are exhausted, a get-or-create request returns an existing sandbox but creates none', async () => {
  const alice = await world.account()
  const { id } = (await getOrCreate(alice, 'web')).body
  const limit = (column: string, value: number) =>
    world.db.query(`update account set ${column} = ? where id = ?`, [value, alice.id])
  await limit('concurrent_limit', 1)
  expect((await getOrCreate(alice, 'web')).body.id).toBe(id)
  const full = await expectRefusal(getOrCreate(alice, 'other'))
  expect(full.code).toBe('concurrent_sandbox_limit_reached')
  await limit('concurrent_limit', 2)
  await limit('hours_limit', 0)
  expect((await getOrCreate(alice, 'web')).body.id).toBe(id)
  const used = await expectRefusal(getOrCreate(alice, 'other'))
  expect(used.code).toBe('monthly_usage_limit_reached')
})

test('a get-or-create request returns the newest of several active sandboxes with the same name', async () => {
  const alice = await world.account()
  const create = async (env: Record<string, string>) =>
    (await alice.call('createSandbox', { body: { name: 'web', env, ttl_seconds: 60 } })).body.id
  const ids = [await create({ A: '1' }), await create({ A: '2' })]
  await alice.call('updateSandbox', { params: { id: ids[1]! }, body: { ttl_seconds: 1_000 } })
  expect((await getOrCreate(alice, 'web', { env: { A: '2' } })).body.id).toBe(ids[1])
  const refused = await expectRefusal(getOrCreate(alice, 'web', { env: { A: '1' } }))
  expect(refused.problem).toMatchObject({ code: 'sandbox_mismatch', sandbox_id: ids[1] })
})

test('different accounts can use the same sandbox name', async () => {
  const [alice, bob] = [await world.account(), await world.account()]
  const ids = [(await getOrCreate(alice, 'web')).body.id, (await getOrCreate(bob, 'web')).body.id]
  expect(ids[0]).not.toBe(ids[1])
})

test.each(['a/b', 'é ?#%', '100%25', 'x'.repeat(100)])('the path can contain the name %s', async (name) => {
  const alice = await world.account()
  const { body } = await getOrCreate(alice, name, {}, asynchronously)
  expect(body.name).toBe(name)
  expect((await getOrCreate(alice, name, {}, asynchronously)).body.id).toBe(body.id)
})

test.each([' ', 'x'.repeat(101), 'a\0b'])('rejects the name %j', async (name) => {
  const alice = await world.account()
  expect(await expectRefusal(getOrCreate(alice, name))).toMatchObject({ status: 404, code: 'not_found' })
})

test('a get-or-create request rejects a name in the body and ignores an Idempotency-Key', async () => {
  const alice = await world.account()
  const refused = await expectRefusal(getOrCreate(alice, 'web', { name: 'web' } as Body))
  expect(refused.problem).toMatchObject({ code: 'invalid_request', errors: [{ path: 'name' }] })
  const headers = { 'idempotency-key': 'same' }
  const ids = []
  for (const name of ['one', 'two']) ids.push((await getOrCreate(alice, name, {}, { headers })).body.id)
  expect(ids[0]).not.toBe(ids[1])
})

test('a waiting get-or-create request creates a new sandbox if the starting sandbox is destroyed', async () => {
  await using slow = await startWorld()
  const alice = await slow.account()
  // The worker is frozen, but its liveness timeout has not elapsed.
  slow.workers[0]!.signal('SIGSTOP')
  const first = await getOrCreate(alice, 'web', {}, asynchronously)
  const second = await getOrCreate(alice, 'web', {}, asynchronously)
  expect([first.status, second.status]).toEqual([202, 202])
  expect(second.body.id).toBe(first.body.id)
  expect(second.headers.get('preference-applied')).toBe('respond-async')
  const waiting = getOrCreate(alice, 'web')
  waiting.catch(() => {})
  const isAdmitted = () =>
    slow.apis[0]!.lines.filter(({ msg, reused }) => msg === 'admitted' && reused).length === 2
  await slow.eventually(isAdmitted, 5_000)
  await alice.call('destroySandbox', { params: { id: first.body.id } })
  slow.workers[0]!.signal('SIGCONT')
  const { status, body } = await waiting
  expect(status).toBe(201)
  expect(body.id).not.toBe(first.body.id)
})

test('the stored hash of an environment does not reveal the environment and is deleted together with it', async () => {
  const alice = await world.account()
  const env = { PIN: '1234' }
  const ids = [
    (await getOrCreate(alice, 'one', { env })).body.id,
    (await getOrCreate(alice, 'two', { env })).body.id,
  ]
  const hashOf = async (id: string) => {
    const [row] = await world.db.query<{ env_hash: Uint8Array | null }>(
      'select env_hash from sandbox where id = ?',
      [id],
    )
    return row!.env_hash && Buffer.from(row!.env_hash)
  }
  const [one, two] = [await hashOf(ids[0]!), await hashOf(ids[1]!)]
  expect(isHashOf(one!, { sandbox: ids[0], env }, world.settings.rpcKeys)).toBe(true)
  expect(one).not.toEqual(two)
  for (const text of [JSON.stringify(env), JSON.stringify(Object.entries(env)), 'PIN=1234'])
    expect(one).not.toEqual(createHash('sha256').update(text).digest())
  await alice.call('destroySandbox', { params: { id: ids[0]! } })
  expect(await hashOf(ids[0]!)).toBeNull()
})
