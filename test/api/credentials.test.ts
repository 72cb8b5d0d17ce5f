/** Every route with missing, wrong and swapped credentials, and with ids from another account. */
import { describe, expect, test } from 'vitest'
import { makeApiKey } from '../../api/auth/api-keys.ts'
import { Tokens } from '../../api/auth/tokens.ts'
import { type EndpointName, endpoints } from '../../shared/contract/index.ts'
import { newSandboxId } from '../../shared/data/ids.ts'
import { type CallOptions, callAs, codeOf } from '../support/account.ts'
import { insertSandbox } from '../support/rows.ts'
import { shareWorld } from '../support/shared.ts'

const world = shareWorld({ workers: 0 })

/** Valid inputs for each route, so that only the id is invalid. */
const inputs: { [N in EndpointName]?: CallOptions<N> } = {
  createApiKey: { body: {} },
  updateSandbox: { body: {} },
  execCommand: { body: { command: 'true' } },
  callMcp: { body: { jsonrpc: '2.0' } },
  viewFile: { query: { path: 'a' } },
  createFile: { body: { path: 'a', content: '' } },
  editFile: { body: { path: 'a', old: 'b', new: 'c' } },
  statFile: { query: { path: 'a' } },
  makeDirectory: { body: { path: 'a' } },
  moveFile: { body: { path: 'a', to: 'b' } },
  removeFile: { body: { path: 'a' } },
  changeFileMode: { body: { path: 'a', mode: '644' } },
  globFiles: { query: { pattern: '*' } },
  grepFiles: { query: { pattern: 'a' } },
  readRawFile: { query: { path: 'a' } },
  writeRawFile: { query: { path: 'a' } },
}

const names = Object.keys(endpoints) as EndpointName[]
const guarded = names.filter((name) => endpoints[name].credential !== 'none')
const withId = guarded.filter((name) => 'params' in endpoints[name])

const attempt = (name: EndpointName, credentials: { token?: string; key?: string }, params = {}) =>
  callAs(world, credentials, name, { ...inputs[name], params } as never)

/** Sends the text as both kinds of credential. */
const instead = (text: string) => ({ token: text, key: text })

describe.each(guarded)('%s', (name) => {
  const { credential } = endpoints[name]
  const other = credential === 'key' ? 'token' : 'key'

  test('rejects a request without credentials', async () => {
    await expect(attempt(name, {})).rejects.toMatchObject({ status: 401, code: 'missing_credentials' })
  })

  test.each([
    ['an unknown key', makeApiKey().raw],
    ['a mistyped key', `${makeApiKey().raw.slice(0, -1)}!`],
    ['a forged token', new Tokens(['x'.repeat(64)]).issue({ accountId: 'acc_1', generation: 0 })],
    ['nonsense', 'nonsense'],
  ])('rejects a request with %s', async (_, text) => {
    const refusal = await attempt(name, instead(text)).catch((error) => error)
    // The prefix shows that this is the wrong kind of credential.
    const wrongKind = text.startsWith('sandlot_live_')
      ? credential === 'token'
      : text.includes('.') && credential === 'key'
    expect(refusal).toMatchObject(
      wrongKind
        ? { status: 403, code: 'wrong_credential_type' }
        : { status: 401, code: 'invalid_credentials' },
    )
    if (!wrongKind) expect(refusal.headers.get('www-authenticate')).toBe('Bearer')
  })

  test(`rejects a valid ${other} and names the credential that the route requires`, async () => {
    const alice = await world.account()
    await expect(attempt(name, instead(alice[other]))).rejects.toMatchObject({
      status: 403,
      code: 'wrong_credential_type',
      problem: {
        detail: expect.stringContaining(
          credential === 'key' ? 'requires an API key' : 'requires a session token',
        ),
      },
    })
  })
})

test.each(withId)("the %s operation treats another account's id like an unknown id", async (name) => {
  const alice = await world.account()
  const bob = await world.account()
  const sandboxId = await insertSandbox(world, bob)
  const of = (id: string, key_id: string) => attempt(name, alice, { id, key_id }).catch((error) => error)
  const bobs = await of(sandboxId, bob.keyId)
  const unknown = await of(newSandboxId(), `key_${sandboxId.slice(4)}`)
  expect(bobs).toMatchObject({ status: 404, code: 'not_found' })
  expect({ ...bobs.problem, request_id: '' }).toEqual({ ...unknown.problem, request_id: '' })
  const [row] = await world.db.query('select destroyed_at from sandbox where id = ?', [sandboxId])
  expect(row!.destroyed_at).toBeNull()
  expect((await bob.call('getAccount')).status).toBe(200)
})

test.each(['', ' ', 'x', '%00', '..', 'sbx_', "sbx_' or true --"])('rejects sandbox id %j', async (id) => {
  const alice = await world.account()
  const response = await fetch(
    `${world.url()}/v1/sandboxes/${id === '%00' ? id : encodeURIComponent(id)}/exec`,
    {
      method: 'POST',
      headers: { authorization: `Bearer ${alice.key}`, 'content-type': 'application/json' },
      body: '{"command":"true"}',
    },
  )
  expect(response.status).toBe(404)
})

test('lists contain only objects that belong to the account', async () => {
  const alice = await world.account()
  const bob = await world.account()
  await insertSandbox(world, bob)
  expect((await alice.call('listSandboxes')).body.data).toEqual([])
  expect((await bob.call('listSandboxes')).body.data).toHaveLength(1)
  expect((await alice.call('listApiKeys')).body.data.map(({ id }) => id)).toEqual([alice.keyId])
  expect((await alice.call('getAccount')).body.concurrent.active).toBe(0)
})

test.each(['basic abc', 'Bearer', 'Bearer a b', 'sandlot_live_abc'])(
  'rejects the invalid Authorization header %j',
  async (header) => {
    const response = await fetch(`${world.url()}/v1/account`, { headers: { authorization: header } })
    expect(response.status).toBe(401)
    expect(await response.json()).toMatchObject({ code: 'invalid_credentials' })
  },
)

test.each([
  ['getAccount', {}],
  ['createSecret', { body: { name: 'NAME', value: 'value' } }],
  ['setAllowlist', { body: { commands: ['ls'] } }],
  ['clearAllowlist', {}],
] as const)("%s rejects a deleted account's credential without an internal error", async (name, options) => {
  const alice = await world.account()
  await alice.call('listSandboxes')
  await world.db.query('delete from account where id = ?', [alice.id])
  expect(await codeOf(alice.call(name, options as never))).toBe('invalid_credentials')
})
