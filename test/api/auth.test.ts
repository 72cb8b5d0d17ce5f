import { createHmac } from 'node:crypto'
import jwt from 'jsonwebtoken'
import { expect, test } from 'vitest'
import { callAs, expectRefusal, type Refusal } from '../support/account.ts'
import { shareWorld } from '../support/shared.ts'

const world = shareWorld({ workers: 0 })

const logIn = ({ email, password }: { email: string; password: string }) =>
  callAs(world, {}, 'logIn', { body: { email, password } })

test('a login returns a session token for the account', async () => {
  const alice = await world.account()
  const { body } = await logIn(alice)
  expect(body).toMatchObject({
    account: { id: alice.id, email: alice.email },
    token_type: 'Bearer',
    expires_in: 900,
  })
  const keys = await alice.with({ token: body.token }).call('listApiKeys')
  expect(keys.body.data.map(({ id }) => id)).toEqual([alice.keyId])
})

test('treats two spellings of an email address as the same account', async () => {
  const alice = await world.account({ email: '  Alice.Liddell@Example.COM ' })
  expect(alice.email).toBe('alice.liddell@example.com')
  await expect(world.account({ email: 'ALICE.LIDDELL@example.com' })).rejects.toMatchObject({
    status: 409,
    code: 'email_taken',
  })
  const { body } = await logIn({ email: 'aLiCe.liddell@example.com\n', password: alice.password })
  expect(body.account.id).toBe(alice.id)
})

test('exactly one of twenty concurrent sign-ups with the same email address succeeds', async () => {
  const answers = await Promise.allSettled(
    Array.from({ length: 20 }, () => world.account({ email: 'twenty@example.com' })),
  )
  const refusals = answers.filter((answer) => answer.status === 'rejected')
  expect(refusals).toHaveLength(19)
  expect(new Set(refusals.map(({ reason }) => (reason as Refusal).code))).toEqual(new Set(['email_taken']))
})

test.each([
  ['not an address', { email: 'alice', password: 'long enough password' }, ['email']],
  ['a short password', { email: 'short@example.com', password: '123456789' }, ['password']],
  ['nothing', {}, ['email', 'password']],
  ['an unknown field', { email: 'a@example.com', password: 'long enough password', admin: true }, ['admin']],
  ['a body that is not an object', 'text', ['']],
])('rejects a sign-up and names the invalid fields: %s', async (_, body, paths) => {
  const refusal: Refusal = await callAs(world, {}, 'signUp', { body: body as never }).catch((error) => error)
  expect(refusal).toMatchObject({ status: 400, code: 'invalid_request' })
  expect(refusal.problem.errors?.map(({ path }) => path)).toEqual(paths)
})

test('returns the same error for a wrong password and an unknown email address', async () => {
  const alice = await world.account()
  const wrong = await expectRefusal(logIn({ email: alice.email, password: 'not her password' }))
  const unknown = await expectRefusal(logIn({ email: 'nobody@example.com', password: 'not her password' }))
  const { request_id, ...words } = wrong.problem
  expect(words).toMatchObject({ status: 401, code: 'invalid_credentials' })
  expect(unknown.problem).toEqual({ ...words, request_id: expect.any(String) })
  expect(unknown.headers.get('www-authenticate')).toBe('Bearer')
  // An account can never have this address, so a different error reveals nothing.
  const malformed = await expectRefusal(logIn({ email: 'no address', password: '' }))
  expect(malformed.problem).toMatchObject({ status: 400, errors: [{ path: 'email' }] })
})

test('a login to a suspended account returns account_suspended only if the password is correct', async () => {
  const alice = await world.account()
  await world.db.query('update account set suspended_at = sandlot_now() where id = ?', [alice.id])
  await expect(logIn(alice)).rejects.toMatchObject({ code: 'account_suspended' })
  await expect(logIn({ ...alice, password: 'wrong password' })).rejects.toMatchObject({
    code: 'invalid_credentials',
  })
  await expect(alice.call('listApiKeys')).rejects.toMatchObject({ code: 'account_suspended' })
})

test('stores no plain-text password or token in the database', async () => {
  const alice = await world.account()
  const [row] = await world.db.query('select account::text as text from account where id = ?', [alice.id])
  expect(row!.text).not.toContain(alice.password)
  const [stored] = await world.db.query<{ password_hash: Buffer }>(
    'select password_hash from account where id = ?',
    [alice.id],
  )
  expect(stored!.password_hash.subarray(0, 6).toString()).toBe('scrypt')
})

function signRaw(payload: object, secret: string): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const signed = `${part({ alg: 'HS256', typ: 'JWT' })}.${part(payload)}`
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
}

const issued = { issuer: 'sandlot', audience: 'sandlot-dashboard' } as const
const raw = { iss: 'sandlot', aud: 'sandlot-dashboard', exp: 9_999_999_999 }

type Forge = (secret: string, subject: string) => string
const sign =
  (options: jwt.SignOptions, other?: string): Forge =>
  (secret, subject) =>
    jwt.sign({}, other ?? secret, { ...issued, subject, expiresIn: 60, ...options })

test.each<[string, Forge, string?]>([
  ['an expired one', sign({ expiresIn: -1 }), 'token_expired'],
  ['one signed with a different secret', sign({}, 'x'.repeat(64))],
  ['one from a different issuer', sign({ issuer: 'other' })],
  ['one for another audience', sign({ audience: 'other' })],
  ['one with another algorithm', sign({ algorithm: 'HS512' })],
  ['an unsigned one', sign({ algorithm: 'none' }, '')],
  // Signed by hand, because the library rejects these subjects.
  ...[123, { id: 'acc' }, ['acc'], '', "' or true --", undefined].map((sub): [string, Forge] => [
    `one whose subject is ${JSON.stringify(sub)}`,
    (secret) => signRaw({ ...raw, sub }, secret),
  ]),
  ['one with an invalid generation', (secret, sub) => signRaw({ ...raw, sub, generation: '0' }, secret)],
  ['one of a deleted account', sign({ subject: 'acc_gone' })],
])('rejects a session token: %s', async (_, forge, code = 'invalid_credentials') => {
  const alice = await world.account()
  const token = forge(world.settings.jwtSecrets[0]!, alice.id)
  await expect(alice.with({ token }).call('listApiKeys')).rejects.toMatchObject({ status: 401, code })
})

test('changing the password requires the current password and ends all other logins', async () => {
  const alice = await world.account()
  const other = alice.with({ token: (await logIn(alice)).body.token })
  const next = { email: alice.email, password: 'quite a new password' }
  const change = (current_password: string, new_password: string) =>
    alice.call('changePassword', { body: { current_password, new_password } })
  await expect(change('not her password', next.password)).rejects.toMatchObject({
    code: 'invalid_credentials',
  })
  await expect(change(alice.password, 'short')).rejects.toMatchObject({ code: 'invalid_request' })
  expect((await other.call('listApiKeys')).status).toBe(200)

  const { body } = await change(alice.password, next.password)
  for (const ended of [alice, other]) {
    await expect(ended.call('listApiKeys')).rejects.toMatchObject({
      status: 401,
      code: 'invalid_credentials',
    })
  }
  expect((await alice.with({ token: body.token }).call('listApiKeys')).status).toBe(200)
  expect((await alice.call('getAccount')).status).toBe(200)
  await expect(logIn(alice)).rejects.toMatchObject({ code: 'invalid_credentials' })
  expect((await logIn(next)).body.account.id).toBe(alice.id)
})

test('ends all sessions of one account without affecting other accounts', async () => {
  const alice = await world.account()
  const bob = await world.account()
  const fresh = alice.with({ token: (await logIn(alice)).body.token })
  expect((await fresh.call('endSessions')).status).toBe(204)
  for (const ended of [alice, fresh]) {
    await expect(ended.call('listApiKeys')).rejects.toMatchObject({
      status: 401,
      code: 'invalid_credentials',
    })
  }
  expect((await bob.call('listApiKeys')).status).toBe(200)
  const again = alice.with({ token: (await logIn(alice)).body.token })
  expect((await again.call('listApiKeys')).status).toBe(200)
})
