import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { clientPath, Home, settingsFor } from './client.ts'
import { startPeer } from './peer.ts'
import { openScreen } from './screen.ts'
import { openTerminal } from './terminal.ts'

const password = 'correct horse battery'

test('the test terminal echoes input unless a program turns echo off', async () => {
  using home = new Home()
  const terminal = openTerminal(
    ['sh', '-c', 'echo ready; read line; echo "got $line" | tr a-z A-Z'],
    home.environment(),
  )
  await terminal.shows('ready')
  terminal.type(`${password}\n`)
  await terminal.shows('GOT CORRECT')
  expect(terminal.screen()).toContain(password)
  await terminal.ended
})

test.each([
  ['signup', ['signup', '--url', 'http://127.0.0.1:1'], ['Password', 'Password, again']],
  ['keys ls', ['keys', 'ls', '--url', 'http://127.0.0.1:1'], ['Password']],
])(
  'the command %s prompts for email and password and never echoes the password',
  async (_, args, questions) => {
    using home = new Home()
    const terminal = home.open(args)
    await terminal.shows('Email')
    terminal.type('alice@example.com\r')
    for (const question of questions) {
      await terminal.shows(question)
      // Ctrl-T would show the password in the library's prompt.
      for (const letter of ['\u0014', ...password]) terminal.type(letter)
      terminal.type('\r')
    }
    await terminal.shows('refused the connection')
    expect(await terminal.ended).toBe(8)
    const screen = stripVTControlCharacters(terminal.screen())
    expect(screen).toContain('alice@example.com')
    for (const part of [password, 'correct', 'horse', 'battery', '***']) expect(screen).not.toContain(part)
  },
)

test.each([
  ['ctrl-c', '\u0003'],
  ['ctrl-d', '\u0004'],
])('pressing %s at a prompt makes the client exit with code 130', async (_, key) => {
  using home = new Home()
  const terminal = home.open(['signup', '--url', 'http://127.0.0.1:1'])
  await terminal.shows('Email')
  terminal.type(key)
  expect(await terminal.ended).toBe(130)
  expect(terminal.screen()).toContain('Interrupted')
})

test('`signup` prompts again after an invalid email, a short password or mismatched passwords', async () => {
  await using peer = await startPeer((_, response) => response.writeHead(500).end())
  using home = new Home()
  const terminal = home.open(['signup', '--url', peer.url])
  await terminal.shows('Email')
  terminal.type('alice\r')
  await terminal.shows('is not an email address')
  terminal.type('@example.com\r')
  await terminal.shows('Password')
  terminal.type('short\r')
  await terminal.shows('The password must have at least 10 characters.')
  terminal.type(` ${password}\r`)
  await terminal.shows('Password, again')
  terminal.type(`${password}!\r`)
  await terminal.shows('The passwords do not match.')
  expect(peer.asked).toEqual([])
  for (const question of ['Password', 'Password, again']) {
    await terminal.shows(question)
    terminal.type(`${password}\r`)
  }
  expect(await terminal.ended).toBe(8)
  expect(JSON.parse(peer.asked[0]!.body)).toEqual({ email: 'alice@example.com', password })
  peer.asked.length = 0
  const given = await home.run(['signup', '--url', peer.url, '--email', 'alice@', '--no-input', '--json'])
  expect(given.json().error).toMatchObject({ exit_code: 2, message: '"alice@" is not an email address.' })
  expect(peer.asked).toEqual([])
})

/** A service with these keys. The client uses the key `current`. */
const startKeys = (data: object[], current: string) =>
  startPeer(({ url = '', method }, response) => {
    if (method === 'DELETE') return response.writeHead(204).end()
    const page = { data, next_cursor: null }
    const account = { api_key: { id: current } }
    const answer =
      url === '/v1/account' ? account : url.startsWith('/v1/api-keys') ? page : { token: 'a.b.c' }
    response.end(JSON.stringify(answer))
  })

test.each([
  [80, ['ID', 'NAME', 'SCOPE', 'KEY', 'EXPIRES']],
  [120, ['ID', 'NAME', 'SCOPE', 'KEY', 'CREATED', 'LAST USED', 'EXPIRES']],
])('on a terminal with %d columns, `keys ls` truncates neither ids nor times', async (columns, titles) => {
  const ids = ['a', 'b', 'c'].map((letter) => `key_${letter.repeat(26)}`)
  const ago = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString()
  const data = [
    ['ci', null, null],
    ['deploy of the docs', ago(120), ago(110)],
    ['a name that is much too long here', ago(130), ago(-110)],
  ].map(([name, last_used_at, expires_at], at) => ({
    id: ids[at],
    name,
    scope: 'full',
    last_four: `xyz${at}`,
    created_at: ago(140),
    last_used_at,
    expires_at,
  }))
  await using peer = await startKeys(data, ids[1]!)
  using home = new Home()
  const env = home.environment(settingsFor(peer.url))
  const args = ['keys', 'ls', '--email', 'a@example.com']
  using screen = openScreen([process.execPath, clientPath, ...args], env, { columns })
  await screen.shows('Password')
  screen.type(`${password}\r`)
  await screen.shows(ids[2]!)
  await screen.ended
  const [head, ...rows] = screen.rows().slice(screen.rows().findIndex((row) => row.includes('EXPIRES')))
  expect(head!.trim().split(/ {2,}/)).toEqual(titles)
  expect(rows.slice(0, 3)).toEqual([
    expect.stringMatching(new RegExp(`^  ${ids[0]}  ci .*  …xyz0  (.*  )?never$`)),
    expect.stringMatching(
      new RegExp(`^\\* ${ids[1]}  deploy of the docs .*  …xyz1  (.*  )?11[01] days ago$`),
    ),
    expect.stringMatching(new RegExp(`^  ${ids[2]}  a name that is .*  …xyz2  (.*  )?in 110 days$`)),
  ])
})

test('`keys rm` asks for confirmation before it revokes the current key', async () => {
  const rest = { name: 'k', scope: 'full', last_four: 'xxxx', created_at: '' }
  const key = (id: string) => ({ id, ...rest, last_used_at: null, expires_at: null })
  await using peer = await startKeys([key('key_b'), key('key_a')], 'key_a')
  using home = new Home()
  const run = async (...words: string[]) => {
    const terminal = home.open(['keys', ...words, '--email', 'a@example.com'], settingsFor(peer.url))
    await terminal.shows('Password')
    terminal.type(`${password}\r`)
    return terminal
  }
  const list = await run('ls')
  await list.shows('* key_a')
  expect(list.screen()).toContain('  key_b')
  await list.ended
  const asked = await run('rm', 'key_a')
  await asked.shows('It is the key that this client is using.')
  asked.type('\r')
  await asked.shows('Nothing was revoked.')
  expect(await asked.ended).toBe(1)
  expect(await (await run('rm', 'key_b')).ended).toBe(0)
  const deleted = peer.asked.map(({ line }) => line).filter((line) => line.startsWith('DELETE'))
  expect(deleted).toEqual(['DELETE /v1/api-keys/key_b'])
})

test.each([
  ['web', ' -s web'],
  ['my web', " -s 'my web'"],
  [null, ''],
])('`session create` with the name %s suggests a command for the new session', async (name, which) => {
  const session = { id: 'sbx_a', name, state: 'active', ready_at: '', expires_at: '2100-01-01T00:00:00Z' }
  await using peer = await startPeer((_, response) => response.end(JSON.stringify(session)))
  using home = new Home()
  const env = settingsFor(peer.url, { npm_command: 'exec', PATH: '/usr/bin:/bin' })
  const terminal = home.open(['session', 'create'], env)
  await terminal.shows(`Next: npx sandlot exec${which} -- uname -a`)
  expect(await terminal.ended).toBe(0)
})

/** A service with one active session, which is also its response to all other requests. */
const startService = () =>
  startPeer(({ method, url = '' }, response) => {
    const session = { id: 'sbx_a', name: 'web', state: 'active' }
    const list = method === 'GET' && url.startsWith('/v1/sandboxes?')
    if (method === 'DELETE' && !url.startsWith('/v1/sandboxes')) return response.writeHead(204).end()
    response.end(JSON.stringify(list ? { data: [session], next_cursor: null } : session))
  })

const confirmations: [string[], string, string][] = [
  [['session', 'rm'], 'Destroy sbx_a?', 'Nothing was destroyed'],
  [['session', 'rm', '--all'], 'Destroy web (sbx_a)?', 'Nothing was destroyed'],
  [['allowlist', 'clear'], 'Remove the allowlist', 'Nothing was changed'],
  [['secrets', 'rm', 'TOKEN'], 'Delete the secret TOKEN', 'Nothing was deleted'],
]

test.each(confirmations)(
  'the command %j asks for confirmation, and requires --yes without a terminal',
  async (words, question, nothing) => {
    await using service = await startService()
    using home = new Home()
    const args = [...words, '--url', service.url, '--api-key', 'sandlot_live_x']
    const deleted = () => service.asked.filter(({ line }) => line.startsWith('DELETE'))
    const terminal = home.open(args)
    await terminal.shows(question)
    terminal.type('\r')
    expect(await terminal.ended).toBe(1)
    expect(terminal.screen()).toContain(nothing)
    expect(await home.run(args)).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') })
    expect(deleted()).toEqual([])
    expect(await home.run([...args, '--yes'])).toMatchObject({ code: 0 })
    expect(deleted()).toHaveLength(1)
  },
)

test('`session rm` does not ask for confirmation if the session is given by id or with --session', async () => {
  await using service = await startService()
  using home = new Home()
  for (const words of [['sbx_a'], ['--session', 'sbx_a']]) {
    const args = ['session', 'rm', ...words, '--url', service.url, '--api-key', 'sandlot_live_x']
    expect(await home.run(args)).toMatchObject({ code: 0, stdout: 'sbx_a\n' })
  }
  expect(service.asked.map(({ line }) => line)).toEqual(Array(2).fill('DELETE /v1/sandboxes/sbx_a'))
})

test('`config set-key` without an argument prompts for the key without echoing it', async () => {
  using home = new Home()
  const terminal = home.open(['config', 'set-key'])
  await terminal.shows('API key')
  terminal.type(`sandlot_live_abc${'x'.repeat(42)}mnop\r`)
  expect(await terminal.ended).toBe(0)
  expect(terminal.screen()).not.toContain('sandlot_live_abc')
  expect((await home.run(['config', 'show', '--json'])).json().api_key.value).toBe('…mnop')
})

/** A service that accepts every signup and login. */
const startAccounts = () =>
  startPeer(({ url }, response) => {
    const session = { account: { id: 'acc_a', email: 'a@example.com' }, token: 'a.b.c', expires_in: 900 }
    const key = { id: 'key_a', key: `sandlot_live_${'x'.repeat(49)}`, last_four: 'xxxx' }
    response.writeHead(201).end(JSON.stringify(url === '/v1/api-keys' ? key : session))
  })

test('`login` shows when the login session expires', async () => {
  await using peer = await startAccounts()
  using home = new Home()
  const terminal = home.open(['login', '--url', peer.url])
  for (const [question, answer] of [
    ['Email', 'a@example.com'],
    ['Password', password],
  ]) {
    await terminal.shows(question!)
    terminal.type(`${answer}\r`)
  }
  await terminal.shows('login ends')
  expect(await terminal.ended).toBe(0)
  expect(terminal.screen()).toMatch(/login ends +in 15 min\r\n/)
})

test.each([
  ['from the PATH', {}, 'Next: sandlot session create'],
  ['through npx', { npm_command: 'exec' }, 'Next: npx sandlot session create'],
  ['by its path', {}, `Next: node ${clientPath} session create`],
])('`signup` suggests a command that works when the client is started %s', async (how, more, next) => {
  await using peer = await startAccounts()
  using home = new Home()
  const bin = join(home.folder, 'bin')
  mkdirSync(bin)
  if (how === 'from the PATH') writeFileSync(join(bin, 'sandlot'), '')
  const args = ['--url', peer.url, '--email', 'a@example.com', '--password', password]
  const terminal = home.open(['signup', ...args], { ...more, PATH: `${bin}:/usr/bin:/bin` })
  await terminal.shows(next)
  if (how !== 'from the PATH') await terminal.shows('npm install -g ./cli')
  expect(await terminal.ended).toBe(0)
})
