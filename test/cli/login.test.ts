import { readFileSync, statSync } from 'node:fs'
import { parse } from 'smol-toml'
import { expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { shareWorld } from '../support/shared.ts'
import { Home } from './client.ts'
import { startPeer } from './peer.ts'
import { makeUsers, password } from './users.ts'

const world = shareWorld({ workers: 0, env: { RATE_LOGIN_PER_MINUTE: '100' } })
const users = makeUsers(world)

const saved = (home: Home) => parse(readFileSync(home.configFile, 'utf8'))
const logIn = (home: Home, email: string, ...more: string[]) =>
  home.run(['login', '--url', world.url(), '--email', email, '--password-stdin', '--json', ...more], {
    input: password,
  })
const asks = { code: 2, stderr: expect.stringContaining('--email and --password-stdin') }

test('`keys` and `account` commands need no password during a login session', async () => {
  using user = await users.newUser()
  const { home, email, run } = user
  const { api_key } = saved(home)
  expect(await run(['keys', 'ls'])).toMatchObject(asks)

  const login = await logIn(home, email)
  expect(login).toMatchObject({ code: 0, stderr: '' })
  // The key saved at signup belongs to this account.
  expect(login.json()).toMatchObject({ account: { email }, api_key: null, base_url: world.url() })
  const { token, ...rest } = saved(home)
  expect(rest).toEqual({ base_url: world.url(), api_key, token_expires_at: login.json().expires_at })
  expect(login.stdout).not.toContain(token)
  expect(statSync(home.configFile).mode & 0o777).toBe(0o600)

  const made = await run(['keys', 'create', '--name', 'ci', '--json'])
  expect(made).toMatchObject({ code: 0 })
  expect(await run(['keys', 'rotate', made.json().id])).toMatchObject({ code: 0 })
  expect(await run(['keys', 'rm', made.json().id])).toMatchObject({ code: 0 })

  // A password change ends all other sessions.
  const change = ['account', 'password', '--password-stdin']
  expect(await run(change, { input: `wrong\nquite a new password` })).toMatchObject({ code: 4 })
  const changed = await run(change, { input: `${password}\nquite a new password` })
  expect(changed).toMatchObject({ code: 0, stdout: `${email}\n` })
  expect(saved(home).token).not.toBe(token)
  expect(await run(['keys', 'ls'])).toMatchObject({ code: 0 })

  expect(await run(['account', 'end-sessions'])).toMatchObject({ code: 0 })
  expect(saved(home)).toEqual({ base_url: world.url(), api_key })
  expect(await run(['keys', 'ls'])).toMatchObject(asks)
})

test('the client sends a session token only to the address for which the token was saved', async () => {
  using user = await users.newUser()
  await using peer = await startPeer((_, response) => response.end('{}'))
  await logIn(user.home, user.email)
  expect(await user.run(['keys', 'ls', '--url', peer.url])).toMatchObject(asks)
  expect(await user.run(['keys', 'ls'], { env: { SANDLOT_URL: peer.url } })).toMatchObject(asks)
  expect(await user.run(['keys', 'ls'])).toMatchObject({ code: 0 })
  await user.run(['config', 'set-url', peer.url])
  expect(saved(user.home)).not.toHaveProperty('token')
  expect(await user.run(['keys', 'ls'])).toMatchObject(asks)
  expect(peer.asked).toEqual([])
})

test('the client ignores a login that has expired or was ended elsewhere', async () => {
  using user = await users.newUser()
  await logIn(user.home, user.email)
  const text = readFileSync(user.home.configFile, 'utf8')
  user.home.writeConfig(text.replace(/^token_expires_at = .*$/m, 'token_expires_at = "2026-01-01T00:00:00Z"'))
  expect(await user.run(['keys', 'ls'])).toMatchObject(asks)
  user.home.writeConfig(text)
  expect(await user.run(['keys', 'ls'])).toMatchObject({ code: 0 })

  const elsewhere = ['account', 'end-sessions', '--email', user.email, '--password-stdin']
  using other = new Home()
  await other.run([...elsewhere, '--url', world.url()], { input: password })
  expect(await user.run(['keys', 'ls'])).toMatchObject(asks)
  expect(saved(user.home)).not.toHaveProperty('token')
})

test('`signup` for a second account names the replaced key and the command for logging in again', async () => {
  using user = await users.newUser()
  const former = String(saved(user.home).api_key).slice(-4)
  const { code, stderr } = await users.signUp(user.home, users.newEmail())
  expect(code).toBe(0)
  expect(stderr).toContain(`The saved API key …${former} for ${world.url()} was replaced. `)
  expect(stderr).toContain(`run \`sandlot login --url ${world.url()}\`. `)
  await logIn(user.home, user.email)
  expect((await user.run(['whoami', '--json'])).json().email).toBe(user.email)
})

test('`login` saves a new key unless a valid key for the same account is already saved', async () => {
  using home = new Home()
  using user = await users.newUser()
  const first = await logIn(home, user.email, '--profile', 'work')
  expect(first.json().api_key).toMatchObject({ id: expect.stringMatching(/^key_/) })
  expect(first.stdout).not.toContain('sandlot_live_')
  const whoami = async () => (await home.run(['whoami', '--profile', 'work', '--json'])).json()
  expect(await whoami()).toMatchObject({ email: user.email, api_key: { id: first.json().api_key.id } })

  await home.run(['keys', 'rm', first.json().api_key.id, '--yes', '--profile', 'work'])
  await eventually(async () => (await whoami()).error?.exit_code === 4, 10_000)
  const second = await logIn(home, user.email, '--profile', 'work')
  const ofFirst = `…${first.json().api_key.last_four} for ${world.url()}`
  expect(second.stderr).toBe(
    `The saved API key ${ofFirst} was replaced. If it is still valid, \`sandlot keys rm\` revokes it.\n`,
  )
  expect(await whoami()).toMatchObject({ api_key: { id: second.json().api_key.id } })

  using other = await users.newUser()
  await logIn(home, other.email, '--profile', 'work')
  expect(await whoami()).toMatchObject({ email: other.email })
  expect(Object.keys(saved(home))).toEqual(['profiles'])

  const wrong = ['login', '--profile', 'work', '--email', user.email, '--password-stdin']
  const before = readFileSync(home.configFile, 'utf8')
  expect(await home.run(wrong, { input: 'another password' })).toMatchObject({ code: 4 })
  expect(readFileSync(home.configFile, 'utf8')).toBe(before)
})

test('`logout` removes the login and key, and reports whether the key is still valid', async () => {
  using user = await users.newUser()
  const { home, run } = user
  await logIn(home, user.email)
  home.writeConfig(
    `# Mine.\n${readFileSync(home.configFile, 'utf8')}\n[profiles.work] # theirs\nbase_url = "https://work.example"\n`,
  )
  const { id } = (await run(['whoami', '--json'])).json().api_key
  const logout = await run(['logout', '--json'])
  expect(logout.json()).toMatchObject({ logged_out: true, api_key: { id, works: true } })
  expect(logout.stderr).toContain(`\`sandlot keys rm ${id}\` revokes it.`)
  expect(readFileSync(home.configFile, 'utf8')).toBe(
    `# Mine.\nbase_url = "${world.url()}"\n\n[profiles.work] # theirs\nbase_url = "https://work.example"\n`,
  )
  expect(await run(['whoami'])).toMatchObject({ code: 4, stderr: expect.stringContaining('sandlot login') })
  expect(await run(['logout', '--json'])).toMatchObject({ code: 0, stderr: '' })

  await logIn(home, user.email)
  const made = (await run(['whoami', '--json'])).json().api_key
  await run(['keys', 'rm', made.id, '--yes'])
  await eventually(async () => (await run(['whoami'])).code === 4, 10_000)
  expect((await run(['logout'])).stderr).toMatch(/^The API key …\w{4} is no longer valid\.\n$/)
})
