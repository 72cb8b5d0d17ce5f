import { describe, expect, test } from 'vitest'
import { newSandboxId } from '../../shared/data/ids.ts'
import { bypasses, bypassList } from '../allowlist-bypasses.ts'
import { type Account, codeOf, type Refusal } from '../support/account.ts'
import { insertSandbox } from '../support/rows.ts'
import { shareWorld } from '../support/shared.ts'

/** Without a worker, an allowed command fails with a different error code. */
const world = shareWorld({ workers: 0, apis: 2 })

const sandboxOf = async (account: Account) => ({ id: await insertSandbox(world, account) })

/** Sets the list before any request, so that no process has cached a different one. */
async function accountWith(commands: string[]): Promise<Account> {
  const account = await world.account()
  await world.db.query('update account set allowlist = ?::jsonb where id = ?', [
    JSON.stringify(commands),
    account.id,
  ])
  return account
}

test('an account has no allowlist before setting one or after clearing it', async () => {
  const alice = await world.account()
  expect((await alice.call('getAllowlist')).body).toEqual({ commands: null, warnings: [], refusals: [] })
  const commands = ['ls', '  git   status ', 'env', 'ls']
  const set = await alice.call('setAllowlist', { body: { commands } })
  expect(set.body).toEqual({
    commands: ['ls', 'git status', 'env'],
    warnings: [{ entry: 'env', message: expect.stringContaining('other commands') }],
    refusals: [],
  })
  expect((await alice.call('getAllowlist')).body).toEqual(set.body)
  expect((await alice.call('clearAllowlist')).status).toBe(204)
  expect((await alice.call('getAllowlist')).body.commands).toBeNull()
})

test('an allowlist applies only to the account that set it', async () => {
  const [alice, bob] = [await accountWith([]), await world.account()]
  expect((await bob.call('getAllowlist')).body.commands).toBeNull()
  const check = (account: Account) => account.call('checkAllowlist', { body: { command: ['ls'] } })
  expect((await check(alice)).body.allowed).toBe(false)
  expect((await check(bob)).body).toEqual({ allowed: true, entry: null, reason: null })
})

test.each([
  ['', 'must name a command'],
  ['   ', 'must name a command'],
  ['*', 'clear the allowlist'],
  ['* --version', 'clear the allowlist'],
  ['npm run test:*', 'must be a separate word'],
  ['l*', 'must be a separate word'],
  ['ls\nid', 'a single line'],
  ['ls\u200b', 'a single line'],
  ['x'.repeat(201), '200'],
])('rejects the invalid allowlist entry %j and returns the reason', async (entry, words) => {
  const alice = await world.account()
  await expect(alice.call('setAllowlist', { body: { commands: ['ls', entry] } })).rejects.toMatchObject({
    code: 'invalid_request',
    problem: { errors: [{ path: 'commands.1', message: expect.stringContaining(words) }] },
  })
  expect((await alice.call('getAllowlist')).body.commands).toBeNull()
})

test('an allowlist check returns the matching entry without running the command', async () => {
  const alice = await accountWith(['ls', 'git status'])
  const check = async (command: string | string[]) =>
    (await alice.call('checkAllowlist', { body: { command } })).body
  expect(await check(['git', 'status', '-s'])).toEqual({ allowed: true, entry: 'git status', reason: null })
  expect(await check(['git', 'push'])).toMatchObject({
    allowed: false,
    entry: null,
    reason: expect.stringContaining('"git"'),
  })
  expect(await check('ls')).toMatchObject({ allowed: false, reason: expect.stringContaining('shell') })
  expect((await alice.call('getAllowlist')).body.refusals).toEqual([])
})

describe('commands in the foreground, as an event stream, in the background and in a terminal', () => {
  const kinds = [
    { body: {} },
    { body: {}, headers: { accept: 'text/event-stream' } },
    { body: { background: true } },
    { body: { tty: true } },
  ]

  test('rejects every known allowlist bypass and states the reason', async () => {
    const alice = await accountWith(bypassList)
    const params = await sandboxOf(alice)
    let count = 0
    for (const [name, command, env] of bypasses) {
      const kind = kinds[count % kinds.length]!
      const call = alice.call('execCommand', {
        params,
        body: { command, ...(env && { env }), ...kind.body },
        headers: kind.headers ?? {},
      })
      const refusal = await call.catch((error: Refusal) => error)
      expect(refusal, name).toMatchObject({
        status: 403,
        code: 'command_not_allowed',
        problem: {
          command: typeof command === 'string' ? '/bin/sh -c' : command[0],
          ...(env && { variable: Object.keys(env)[0] }),
        },
      })
      count++
    }
    const { body } = await alice.call('getAllowlist')
    expect(body.refusals.reduce((sum, { count }) => sum + count, 0)).toBe(count)
  })

  test('runs a command that is on the allowlist', async () => {
    const alice = await accountWith(['ls', 'git status'])
    const params = await sandboxOf(alice)
    for (const { body, headers } of kinds) {
      for (const command of [
        ['ls', '-la'],
        ['git', 'status'],
      ]) {
        const call = alice.call('execCommand', { params, body: { command, ...body }, headers: headers ?? {} })
        expect(await codeOf(call)).toBe('unavailable')
      }
    }
    expect((await alice.call('getAllowlist')).body.refusals).toEqual([])
  })
})

test('every API process applies a new allowlist immediately', async () => {
  const alice = await world.account()
  const params = await sandboxOf(alice)
  const run = (api: number) => codeOf(alice.call('execCommand', { params, body: { command: ['id'] }, api }))
  for (const commands of [['ls'], ['id']]) {
    // Both processes have cached the previous list.
    await Promise.all([run(0), run(1)])
    await alice.call('setAllowlist', { body: { commands } })
    const expected = commands.includes('id') ? 'unavailable' : 'command_not_allowed'
    expect(await Promise.all([run(0), run(1)])).toEqual([expected, expected])
  }
  await alice.call('clearAllowlist')
  expect(await Promise.all([run(0), run(1)])).toEqual(['unavailable', 'unavailable'])
})

test('a new allowlist also applies to a command that is waiting for its sandbox to start', async () => {
  const alice = await world.account()
  const params = await sandboxOf(alice)
  const setReady = (ready: string) =>
    world.db.query(`update sandbox set ready_at = ${ready} where id = ?`, [params.id])
  await setReady('null')
  const outcome = codeOf(alice.call('execCommand', { params, body: { command: ['id'] } }))
  await alice.call('setAllowlist', { body: { commands: ['ls'] } })
  await setReady('sandlot_now()')
  expect(await outcome).toBe('command_not_allowed')
})

test('file requests are allowed even with an empty allowlist', async () => {
  const alice = await accountWith([])
  const params = await sandboxOf(alice)
  expect(await codeOf(alice.call('viewFile', { params, query: { path: 'a' } }))).toBe('unavailable')
  const unknown = alice.call('execCommand', { params: { id: newSandboxId() }, body: { command: ['id'] } })
  expect(await codeOf(unknown)).toBe('not_found')
})

test('reports the number of refused commands for each day of the last month', async () => {
  const alice = await accountWith([])
  const params = await sandboxOf(alice)
  await world.db.query(
    `insert into command_refusal (account_id, day, count)
     select ?, (sandlot_now() at time zone 'UTC')::date - days, days from unnest(array[30, 31, 32]) as days`,
    [alice.id],
  )
  await codeOf(alice.call('execCommand', { params, body: { command: ['id'] } }))
  const { body } = await alice.call('getAllowlist')
  expect(body.refusals.map(({ count }) => count)).toEqual([1, 30])
})
