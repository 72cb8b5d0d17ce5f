/** Keys of each kind of process. Without them, requests and sealed values cannot be read. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { expect, test } from 'vitest'
import { root } from '../../scripts/root.mjs'
import { envSealContext } from '../../shared/data/sandboxes.ts'
import { keysOfApi } from '../../shared/platform/keys.ts'
import { hashOfRequest, isHashOf } from '../../shared/platform/request-hash.ts'
import { makeBox, makeOpener, makeSealer, publicKeyOf } from '../../shared/platform/seal.ts'
import type { Process } from '../support/process.ts'
import { shareSandbox } from '../support/shared.ts'

const { world, alice, params, sh } = shareSandbox({}, { env: { GREETING: 'hello' } })

const [old, fresh] = ['old-'.repeat(8), 'new-'.repeat(8)]

const keysIn = ({ pid }: Process) => {
  const names = readFileSync(`/proc/${pid}/environ`, 'utf8')
    .split('\0')
    .map((entry) => entry.split('=')[0]!)
  return names.filter((name) => /KEY|SECRET/.test(name)).sort()
}

test('the API cannot decrypt sealed values, and a worker cannot sign session tokens', async () => {
  expect(keysIn(world.apis[0]!)).toEqual(['JWT_SECRET', 'RPC_KEY', 'SECRETS_PUBLIC_KEY'])
  expect(keysIn(world.workers[0]!)).toEqual(['RPC_KEY', 'SECRETS_KEY'])
  await alice.call('createSecret', { body: { name: 'TOKEN', value: 'a secret value' } })
  expect((await sh('echo $GREETING $TOKEN', { reveal: true })).stdout).toBe('hello a secret value\n')
  const { body } = await alice.call('listExecs', { params })
  expect(body.data[0]).toMatchObject({ command: 'echo $GREETING $TOKEN' })

  const [row] = await world.db.query<{ sealed_env: Uint8Array }>(
    'select sealed_env from sandbox where id = ?',
    [params.id],
  )
  const place = envSealContext(params.id)
  expect(() => makeBox(world.settings.rpcKeys).open(row!.sealed_env, place)).toThrow()
  expect(makeOpener(world.settings.secretsKeys).open(row!.sealed_env, place)).toBe('{"GREETING":"hello"}')
})

test('an API process with the former SECRETS_KEY setting logs the setting that replaces it', async () => {
  const api = await world.startApi({ KEEP_SECRETS_KEY: 'yes' })
  expect(keysIn(api)).toContain('SECRETS_KEY')
  await world.eventually(
    () => api.lines.some(({ msg }) => msg.includes('npm run admin -- public-key')),
    5_000,
  )
  const index = world.apis.indexOf(api)
  await alice.call('createSecret', { body: { name: 'SECOND', value: 'of the second' }, api: index })
  const command = { command: 'echo $SECOND', reveal: true }
  const { body } = await alice.call('execCommand', { params, body: command, api: index })
  expect(body.stdout).toBe('of the second\n')
})

test("a stored request hash cannot be used to guess the request's content", async () => {
  const body = { command: 'cat', stdin: '1234' }
  await alice.call('execCommand', { params, headers: { 'idempotency-key': 'pin' }, body })
  const [row] = await world.db.query<{ request_hash: Uint8Array }>(
    `select request_hash from exec where idempotency_key = 'pin'`,
  )
  const hash = Buffer.from(row!.request_hash)
  const { rpcKeys } = world.settings
  expect(isHashOf(hash, body, rpcKeys)).toBe(true)
  expect(isHashOf(hash, { ...body, stdin: '1235' }, rpcKeys)).toBe(false)
  const plain = createHash('sha256')
    .update(JSON.stringify(Object.entries(body)))
    .digest()
  expect(hash).not.toEqual(plain)
  expect(isHashOf(hashOfRequest(body, [old]), body, [fresh, old])).toBe(true)
})

test('a sealed value can be opened with any configured key, but only in its original context', () => {
  const sealed = makeSealer(publicKeyOf(old)).seal('text', 'here')
  expect(makeOpener([fresh, old]).open(sealed, 'here')).toBe('text')
  expect(() => makeOpener([fresh, old]).open(sealed, 'there')).toThrow()
  expect(() => makeOpener([fresh]).open(sealed, 'here')).toThrow('a key that is not listed')
  for (const at of sealed.keys()) {
    const changed = Buffer.from(sealed)
    changed[at]! ^= 1
    expect(() => makeOpener([old]).open(changed, 'here'), `byte ${at}`).toThrow()
  }
})

test("each run of make-keys generates new keys and derives the API's keys from SECRETS_KEY", () => {
  const make = () =>
    execFileSync(process.execPath, ['scripts/admin.ts', 'make-keys'], { cwd: root, encoding: 'utf8' })
  const text = make()
  const { JWT_SECRET, SECRETS_KEY, ...ofApi } = parseEnv(text) as Record<string, string>
  expect(ofApi).toEqual(keysOfApi({ SECRETS_KEY: SECRETS_KEY! }))
  expect([JWT_SECRET!.length, SECRETS_KEY!.length]).toEqual([43, 43])
  expect(make()).not.toBe(text)
})

test("derives the API process's keys from the worker's keys, in the same order", () => {
  const given = keysOfApi({ SECRETS_KEY: ` ${fresh}, ${old}` })
  expect(given.SECRETS_PUBLIC_KEY).toBe(publicKeyOf(fresh))
  const box = makeBox(given.RPC_KEY.split(','))
  const before = makeBox(keysOfApi({ SECRETS_KEY: old }).RPC_KEY.split(','))
  expect(box.open(before.seal('ls', 'here'), 'here')).toBe('ls')
})
