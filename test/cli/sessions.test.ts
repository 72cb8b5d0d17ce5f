import { readFileSync, statSync } from 'node:fs'
import { parse } from 'smol-toml'
import { describe, expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { startWorld } from '../support/index.ts'
import { shareWorld } from '../support/shared.ts'
import { clientPath, Home } from './client.ts'
import { openTerminal } from './terminal.ts'
import { makeUsers, password } from './users.ts'

const world = shareWorld()
const users = makeUsers(world)

describe('signup', () => {
  test('`signup` creates an account and a key, and saves the address and the key', async () => {
    using home = new Home()
    const { code, json, stderr } = await users.signUp(home, 'Alice@Example.com', '--json')
    expect(code).toBe(0)
    expect(stderr).toBe('')
    const { account, api_key } = json()
    expect(json()).toMatchObject({
      account: { email: 'alice@example.com' },
      account_existed: false,
      base_url: world.url(),
    })
    const saved = parse(readFileSync(home.configFile, 'utf8'))
    expect(saved).toEqual({ base_url: world.url(), api_key: expect.stringMatching(/^sandlot_live_\w{49}$/) })
    expect(String(saved.api_key).slice(-4)).toBe(api_key.last_four)
    expect(JSON.stringify(json())).not.toContain(saved.api_key)
    expect(statSync(home.configFile).mode & 0o777).toBe(0o600)
    expect((await home.run(['whoami', '--json'])).json().id).toBe(account.id)
  })

  test('`signup` prompts for email and password on a terminal without echoing the password', async () => {
    using home = new Home()
    const email = users.newEmail()
    const terminal = openTerminal(
      [process.execPath, clientPath, 'signup', '--url', world.url()],
      home.environment(),
    )
    await terminal.shows('Email')
    terminal.type(`${email}\r`)
    await terminal.shows('Password')
    terminal.type(`${password}\r`)
    await terminal.shows('Password, again')
    terminal.type(`${password}\r`)
    expect(await terminal.ended).toBe(0)
    expect(terminal.screen()).toContain(email)
    expect(terminal.screen()).not.toContain('horse')
    expect((await home.run(['whoami'])).stdout).toContain(email)
  })

  test('`signup` accepts --password with a warning', async () => {
    using home = new Home()
    const args = ['signup', '--url', world.url(), '--email', users.newEmail(), '--password', password]
    const { code, stderr } = await home.run(args)
    expect(code).toBe(0)
    expect(stderr).toContain('Warning: --password')
    expect(stderr).not.toContain('horse')
  })

  test('`signup` logs in to an existing account if the password matches', async () => {
    using user = await users.newUser()
    const first = parse(readFileSync(user.home.configFile, 'utf8')).api_key
    const again = await users.signUp(user.home, user.email, '--json')
    expect(again.code).toBe(0)
    expect(again.json().account_existed).toBe(true)
    expect(again.stderr).toContain('already has an account')
    expect(parse(readFileSync(user.home.configFile, 'utf8')).api_key).not.toBe(first)
  })

  test('`signup` exits with code 5 and changes nothing if the account has a different password', async () => {
    using user = await users.newUser()
    const before = readFileSync(user.home.configFile, 'utf8')
    const args = ['signup', '--email', user.email, '--password-stdin', '--json']
    const { code, json } = await user.run(args, { input: 'another password' })
    expect(code).toBe(5)
    expect(json().error).toMatchObject({ code: 'email_taken', request_id: expect.any(String) })
    expect(readFileSync(user.home.configFile, 'utf8')).toBe(before)
  })

  test('`signup` exits with code 2 for a short password and names the field', async () => {
    using home = new Home()
    const args = ['signup', '--url', world.url(), '--email', users.newEmail(), '--password-stdin']
    const { code, stderr } = await home.run(args, { input: 'short' })
    expect(code).toBe(2)
    expect(stderr).toMatch(/password.*10 characters/)
  })

  test('`signup` warns about an environment variable that overrides the saved settings', async () => {
    using home = new Home()
    const args = ['signup', '--email', users.newEmail(), '--password-stdin']
    const env = { SANDLOT_URL: world.url(), SANDLOT_API_KEY: 'sandlot_live_x' }
    const { stderr } = await home.run(args, { env, input: password })
    expect(stderr).toContain('SANDLOT_API_KEY is set')
    expect(stderr).toContain('SANDLOT_URL is set')
  })
})

describe('keys', () => {
  const ask = (email: string, ...args: string[]) => ['keys', ...args, '--email', email, '--password-stdin']

  test('`keys` commands do not save the email address or password', async () => {
    using user = await users.newUser()
    const before = readFileSync(user.home.configFile, 'utf8')
    const list = await user.run([...ask(user.email, 'ls'), '--json'], { input: password })
    const [key] = list.json().data
    expect(list.json().data).toHaveLength(1)
    expect((await user.run(ask(user.email, 'ls'), { input: password })).stdout).toContain(key.id)
    expect(await user.run(ask(user.email, 'rm', key.id, '--yes'), { input: password })).toMatchObject({
      code: 0,
      stdout: `${key.id}\n`,
    })
    expect(readFileSync(user.home.configFile, 'utf8')).toBe(before)
    await eventually(async () => (await user.run(['whoami'])).code === 4, 10_000)
    const whoami = await user.run(['whoami', '--json'])
    expect(whoami.code).toBe(4)
    expect(whoami.json().error.code).toBe('invalid_credentials')
  })

  test('`keys rm` exits with code 3 for an unknown key and with code 4 for a wrong password', async () => {
    using user = await users.newUser()
    expect(await user.run(ask(user.email, 'rm', 'key_none'), { input: password })).toMatchObject({ code: 3 })
    expect(await user.run(ask(user.email, 'ls'), { input: 'another password' })).toMatchObject({ code: 4 })
  })
})

describe('sessions', () => {
  test('session commands create, show, list and destroy sessions', async () => {
    using user = await users.newUser()
    const create = 'session create --name first --metadata a=b=c --ttl 10m --idle-timeout 5m'
    const created = await user.run(create.split(' '))
    expect(created.stdout).toMatch(/^sbx_\w+\n$/)
    const id = created.stdout.trim()
    const got = (await user.run(['session', 'get', '--json'])).json()
    expect(got).toMatchObject({ id, state: 'active', name: 'first', metadata: { a: 'b=c' } })
    expect(Date.parse(got.expires_at) - Date.parse(got.created_at)).toBe(600_000)
    expect((await user.run(['session', 'get', id])).stdout).toMatch(/^name +first$/m)
    expect((await user.run(['session', 'get', id])).stdout).toMatch(/^idle timeout +300 s$/m)
    const update = ['session', 'update', id, '--idle-timeout']
    expect((await user.run([...update, '1h', '--json'])).json().idle_timeout_seconds).toBe(3600)
    expect((await user.run([...update, '', '--json'])).json().idle_timeout_seconds).toBeNull()
    const { stdout: listed } = await user.run(['session', 'ls'])
    expect(listed.split('\t').slice(0, 3)).toEqual([id, 'active', 'first'])
    for (const alias of [['ls'], ['session', 'list']]) {
      expect(await user.run(alias)).toMatchObject({ code: 0, stdout: listed })
    }

    expect(await user.run(['session', 'rm'])).toMatchObject({ code: 2, stdout: '' })
    expect(await user.run(['rm', id])).toMatchObject({ code: 0, stdout: `${id}\n` })
    expect(await user.run(['session', 'delete', id, '--yes'])).toMatchObject({ code: 0 })
    expect(await user.run(['session', 'ls'])).toMatchObject({ code: 0, stdout: '' })
    expect((await user.run(['session', 'ls', '--all'])).stdout).toContain(`${id}\tdestroyed`)
    expect((await user.run(['session', 'ls', '--state', 'destroyed', '--json'])).json().data).toHaveLength(1)
  })

  test('`session ls` filters sessions by name, image, labels and time, in both orders', async () => {
    using user = await users.newUser()
    const create = async (...args: string[]) => (await user.run(['session', 'create', ...args])).stdout.trim()
    const web = await create('--name', 'web', '--metadata', 'app.name=a=b', '--metadata', 'n=1')
    const job = await create('--name', 'job', '--metadata', 'app.name=a=b', '--metadata', 'n=2')
    const ls = async (...args: string[]) =>
      (await user.run(['ls', '--quiet', ...args])).stdout.split('\n').slice(0, -1)
    const { created_at, image } = (await user.run(['session', 'get', web, '--json'])).json()
    expect(await ls('--name', 'web')).toEqual([web])
    expect(await ls('--metadata', 'app.name=a=b')).toEqual([job, web])
    expect(await ls('--metadata', 'app.name=a=b', '--metadata', 'n=1')).toEqual([web])
    expect(await ls('--order', 'asc', '--image', image)).toEqual([web, job])
    expect(await ls('--image', 'other')).toEqual([])
    expect(await ls('--created-after', created_at)).toEqual([job])
    expect(await ls('--created-after', '1h')).toEqual([job, web])
  })

  test('error messages of session commands name command-line options instead of API fields', async () => {
    using user = await users.newUser()
    const refusals: [string[], string][] = [
      [['session', 'create', '--ttl', '5h'], 'sandlot: --ttl 5h must be at most 30 min.\n'],
      [['session', 'create', '--name', ' '], "sandlot: --name ' ' must not be empty.\n"],
      [
        ['session', 'create', '--metadata', `a=${'b'.repeat(513)}`],
        '--metadata a must have at most 512 characters',
      ],
      [['session', 'ls', '--limit', '101'], 'sandlot: --limit 101 must be at most 100.\n'],
      [['session', 'ls', '--created-after', 'noon'], 'sandlot: --created-after noon must be a time such as'],
    ]
    for (const [line, words] of refusals) {
      const { code, stderr } = await user.run(line)
      expect(stderr).toContain(words)
      expect(code).toBe(2)
    }
  })

  test('`session create --async` returns before the session is ready', async () => {
    using user = await users.newUser()
    const { json, code } = await user.run(['session', 'create', '--async', '--json'])
    expect(code).toBe(0)
    expect(json()).toMatchObject({ state: 'active', ready_at: null })
    expect(await user.run(['exec', 'echo', 'there'])).toMatchObject({ code: 0, stdout: 'there\n' })
    await user.run(['session', 'rm', '--yes'])
  })

  test('on a terminal, `session rm` asks for confirmation and destroys the session after "yes"', async () => {
    await using user = await users.newSession()
    const terminal = openTerminal([process.execPath, clientPath, 'session', 'rm'], user.home.environment())
    await terminal.shows(`Destroy ${user.id}?`)
    terminal.type('y\r')
    expect(await terminal.ended).toBe(0)
    expect((await user.run(['session', 'get', user.id, '--json'])).json().state).toBe('destroyed')
  })

  test('`session rm` destroys every session it finds and exits with code 3 for unknown ids', async () => {
    await using user = await users.newSession()
    const plain = await user.run(['session', 'rm', '--yes', 'sbx_none', user.id])
    expect(plain).toMatchObject({
      code: 3,
      stdout: `${user.id}\n`,
      stderr: expect.stringContaining('sbx_none'),
    })
    const id = (await user.run(['session', 'create'])).stdout.trim()
    const { code, json } = await user.run(['session', 'rm', '--yes', '--json', 'sbx_none', id])
    expect(code).toBe(3)
    expect(json().error).toMatchObject({
      failed: ['sbx_none'],
      destroyed: [{ id, state: 'destroyed' }],
      message: expect.stringContaining('Destroyed 1 of 2 sessions.'),
    })
  })

  test('if no session is specified, commands use the only session or list the candidates', async () => {
    using user = await users.newUser()
    const none = await user.run(['files', 'view', 'x', '--json'])
    expect(none.json().error).toMatchObject({ code: 'no_session', exit_code: 3 })
    expect(none.code).toBe(3)
    expect(await user.run(['exec', 'true'])).toMatchObject({ code: 125 })

    const create = async () => (await user.run(['session', 'create'])).stdout.trim()
    const ids = [await create(), await create()]
    const several = await user.run(['files', 'view', 'x', '--json'])
    expect(several.code).toBe(5)
    const candidates: { id: string }[] = several.json().error.sessions
    expect(candidates.map(({ id }) => id).sort()).toEqual([...ids].sort())
    for (const id of ids) expect(several.stderr).toContain(id)
    expect(await user.run(['exec', 'true'])).toMatchObject({ code: 125 })

    expect(await user.run(['exec', '--session', ids[0]!, 'touch', 'mark'])).toMatchObject({ code: 0 })
    const there = ['exec', 'test', '-e', 'mark']
    expect(await user.run(there, { env: { SANDLOT_SESSION: ids[0]! } })).toMatchObject({ code: 0 })
    expect(await user.run(there, { env: { SANDLOT_SESSION: ids[1]! } })).toMatchObject({ code: 1 })
    const flagWins = ['exec', '-s', ids[0]!, 'test', '-e', 'mark']
    expect(await user.run(flagWins, { env: { SANDLOT_SESSION: ids[1]! } })).toMatchObject({ code: 0 })

    const refused = await user.run(['session', 'create', '--json'])
    expect(refused.code).toBe(6)
    expect(refused.json().error).toMatchObject({ code: 'concurrent_sandbox_limit_reached', status: 429 })
    for (const id of ids) expect(refused.stderr).toContain(id)
    expect(await user.run(['session', 'rm', '--yes', ...ids])).toMatchObject({ code: 0 })
  })

  test('commands use the current session until it ends or a different session is specified', async () => {
    using user = await users.newUser()
    const create = async (name: string) =>
      (await user.run(['session', 'create', '--name', name])).stdout.trim()
    const [one, two] = [await create('one'), await create('two')]
    const used = async (...args: string[]) => (await user.run(['session', 'get', '--json', ...args])).json()
    expect((await used()).error.hint).toContain('sandlot session use')

    expect(await user.run(['session', 'use', 'two'])).toMatchObject({ code: 0, stdout: `${two}\n` })
    expect(await used()).toMatchObject({ id: two })
    expect(await used('--session', 'one')).toMatchObject({ id: one })
    const env = { SANDLOT_SESSION: 'one' }
    expect((await user.run(['session', 'get', '--json'], { env })).json()).toMatchObject({ id: one })
    const { session } = (await user.run(['config', 'show', '--json'])).json()
    expect(session).toEqual({ value: two, source: user.home.configFile })
    const again = await user.run(['session', 'use', 'two'], { env })
    expect(again.stderr).toBe('SANDLOT_SESSION is set and overrides the current session.\n')

    // Only terminal output marks the current session.
    const shown = async (more = {}) => {
      const terminal = openTerminal([process.execPath, clientPath, 'session', 'ls'], {
        ...user.home.environment(more),
        NO_COLOR: '1',
      })
      await terminal.ended
      return terminal.screen().match(/^\S* +sbx_\w+/gm)
    }
    expect(await shown()).toEqual([`* ${two}`, `  ${one}`])
    expect(await shown(env)).toEqual([`  ${two}`, `* ${one}`])
    expect((await user.run(['session', 'ls', '--quiet'])).stdout).toBe(`${two}\n${one}\n`)

    // The current session has ended, so the only other session is used.
    expect(await user.run(['session', 'rm', '--yes'])).toMatchObject({ stdout: `${two}\n` })
    expect(await used()).toMatchObject({ id: one })
    expect(await user.run(['session', 'use', two])).toMatchObject({ code: 3 })
    expect(await user.run(['session', 'use', 'one', '--none'])).toMatchObject({ code: 2 })
    expect(await user.run(['session', 'use', '--none'])).toMatchObject({ code: 0, stdout: '' })
    expect((await user.run(['config', 'show', '--json'])).json().session).toBeNull()
    await user.run(['session', 'rm', '--yes'])
  })

  test('commands accept a session name if it is unique among the active sessions', async () => {
    using user = await users.newUser()
    const create = async (name: string) =>
      (await user.run(['session', 'create', '--name', name])).stdout.trim()
    const [build, twin] = [await create('build'), await create('twin one')]

    expect((await user.run(['session', 'get', 'build', '--json'])).json().id).toBe(build)
    expect(await user.run(['exec', '-s', 'twin one', 'touch', 'mark'])).toMatchObject({ code: 0 })
    const env = { SANDLOT_SESSION: 'twin one' }
    expect((await user.run(['files', 'ls'], { env })).stdout).toBe('mark\n')
    expect((await user.run(['ps', '--session', 'twin one', '--json'])).json().data).toHaveLength(1)
    const secret = ['secrets', 'create', 'TOKEN', '--session', 'twin one', '--json']
    expect((await user.run(secret, { input: 'hush hush' })).json()).toMatchObject({ sandbox_id: twin })
    expect((await user.run(['secrets', 'ls', '-s', 'build', '--json'])).json().data).toEqual([])
    expect((await user.run(['__complete', '--', 'session', 'get', ''])).stdout).toBe(
      `twin one\t${twin}\nbuild\t${build}\n:4\n`,
    )
    expect((await user.run(['__complete', '--', 'exec', '-s', build.slice(0, -1)])).stdout).toContain(build)

    // If one name is unknown, no session is destroyed.
    expect(await user.run(['session', 'rm', '--yes', 'twin one', 'biuld'])).toMatchObject({
      code: 3,
      stdout: '',
      stderr: expect.stringContaining('No active session is named "biuld".'),
    })
    expect(await user.run(['session', 'rm', '--yes', 'build'])).toMatchObject({ stdout: `${build}\n` })
    expect(await user.run(['session', 'rm', '--yes', 'build'])).toMatchObject({ code: 3 })

    const other = await create('twin one')
    const both = await user.run(['session', 'rm', '--yes', 'twin one', '--json'])
    expect(both.code).toBe(5)
    expect(both.json().error).toMatchObject({ code: 'several_sessions', hint: expect.stringContaining('id') })
    expect(both.json().error.sessions).toEqual([other, twin].map((id) => ({ id, name: 'twin one' })))
    for (const id of [twin, other]) expect(both.stderr).toContain(id)
    expect((await user.run(['session', 'rm', '--yes', twin, other])).stdout).toBe(`${twin}\n${other}\n`)
  })

  test('commands exit with code 3 if the session belongs to another account', async () => {
    await using owner = await users.newSession()
    using other = await users.newUser()
    expect(await other.run(['session', 'get', owner.id])).toMatchObject({ code: 3 })
    expect(await other.run(['session', 'rm', '--yes', owner.id])).toMatchObject({ code: 3 })
    expect(await other.run(['exec', '-s', owner.id, 'true'])).toMatchObject({ code: 125 })
  })
})

test('commands exit with code 7 when a rate limit is exceeded, and report when to retry', async () => {
  await using slow = await startWorld({ workers: 0, env: { RATE_LOGIN_PER_MINUTE: '1' } })
  using home = new Home()
  const args = `keys ls --url ${slow.url()} --email nobody@example.com --password-stdin --json`.split(' ')
  expect(await home.run(args, { input: password })).toMatchObject({ code: 4 })
  const { code, json, stderr } = await home.run(args, { input: password })
  expect(code).toBe(7)
  expect(json().error).toMatchObject({ code: 'rate_limited', retry_after: expect.any(Number) })
  expect(stderr).toMatch(/Try again in \d+ s/)
})
