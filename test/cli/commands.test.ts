/** Runs every command in a pipe, on a terminal, with --json, and without a service. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import pLimit from 'p-limit'
import { parse } from 'smol-toml'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Branch, commands } from '../../cli/commands/index.ts'
import { eventually } from '../support/eventually.ts'
import { startWorld, type World } from '../support/index.ts'
import { clientPath } from './client.ts'
import { openTerminal } from './terminal.ts'
import { makeUsers, password, type SessionUser, type Users } from './users.ts'

let world: World
let users: Users
let user: SessionUser
beforeAll(async () => {
  world = await startWorld({
    env: { RATE_LOGIN_PER_MINUTE: '100', RATE_SANDBOX_OPS_PER_MINUTE: '1000' },
  })
  users = makeUsers(world)
  user = await users.newSession()
  writeFileSync(join(user.home.folder, 'local.txt'), 'local\n')
  await user.run(['files', 'create', 'notes.txt', '--content', 'one\ntwo\n'])
})
afterAll(async () => {
  await user[Symbol.asyncDispose]()
  await world[Symbol.asyncDispose]()
})

interface Shown {
  /** Words in capitals are placeholders. */
  line: string
  /** Expected stdout in a pipe. */
  piped: RegExp
  /** Expected stderr in a pipe. Default: empty. */
  note?: RegExp
  /** Expected terminal output, if different. */
  terminal?: RegExp
  json: string[]
}

const time = String.raw`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`
const ago = String.raw`\d+ (s|min) ago`
const created = String.raw`sbx_\w{26}`

/** These commands can be repeated and run concurrently. */
const walk: Shown[] = [
  {
    line: 'session get',
    piped: new RegExp(`^id +${created}\n.*created +${time}\nready +${time}\nexpires +${time}\n`, 's'),
    terminal: new RegExp(`created +${ago}.*expires +in \\d+ min`, 's'),
    json: ['id', 'state', 'expires_at'],
  },
  {
    line: 'session ls',
    piped: new RegExp(`^${created}\tactive\t\t\\S+\t${time}\t${time}\n$`),
    terminal: new RegExp(
      `^ID +STATE +NAME +IMAGE +CREATED +ENDS\n${created}  active .*  ${ago}  in \\d+ min\n$`,
    ),
    json: ['data', 'next_cursor'],
  },
  { line: 'files view notes.txt', piped: /^one\ntwo\n$/, json: ['content', 'sha256', 'size'] },
  { line: 'files view notes.txt --reveal --lines 2', piped: /^two\n$/, json: ['content'] },
  {
    line: 'files create made.txt --content x --overwrite',
    piped: /^\/workspace\/made\.txt\n$/,
    terminal: /^\/workspace\/made\.txt\nBytes written: 1\.\n$/,
    json: ['path', 'size', 'sha256'],
  },
  { line: 'files ls', piped: /(^|\n)notes\.txt\n/, json: ['entries', 'truncated'] },
  { line: 'files glob n*.txt', piped: /^notes\.txt\n$/, json: ['paths', 'truncated'] },
  { line: 'files grep tw notes.txt', piped: /^notes\.txt:2:two\n$/, json: ['matches', 'skipped_binary'] },
  {
    line: 'files get notes.txt HOME/got.txt',
    piped: /^\S+\/got\.txt\n$/,
    terminal: /got\.txt\n8 bytes\.\n$/,
    json: ['path', 'local', 'size', 'sha256'],
  },
  {
    line: 'files put HOME/local.txt put.txt',
    piped: /^\/workspace\/put\.txt\n$/,
    terminal: /put\.txt\nBytes written: 6\.\n$/,
    json: ['path', 'size', 'sha256'],
  },
  {
    line: 'files stat notes.txt',
    piped: /^-rw-r--r-- +\S+ +\S+ +8 \S+Z \/workspace\/notes\.txt\n$/,
    terminal: /^-rw-r--r-- .* 8 B .* ago \/workspace\/notes\.txt\n$/,
    json: ['path', 'name', 'type', 'owner', 'gid'],
  },
  { line: 'files mkdir -p folder', piped: /^\/workspace\/folder\n$/, json: ['path', 'created'] },
  { line: 'files chmod 644 notes.txt', piped: /^\/workspace\/notes\.txt\n$/, json: ['path', 'mode'] },
  { line: 'files rm -rf folder', piped: /^\/workspace\/folder\n$/, json: ['path', 'removed'] },
  {
    line: 'allowlist get',
    piped: /^$/,
    note: /^There is no allowlist, so all commands are allowed\.\n$/,
    json: ['commands', 'warnings', 'refusals'],
  },
  {
    line: 'allowlist check -- ls -l',
    piped: /^$/,
    terminal: /all commands are allowed/,
    json: ['allowed', 'entry', 'reason'],
  },
  { line: 'allowlist check -c ls', piped: /^$/, terminal: /allowed/, json: ['allowed', 'entry', 'reason'] },
  { line: 'allowlist clear --yes', piped: /^$/, terminal: /all commands are allowed/, json: ['commands'] },
  {
    line: 'whoami',
    piped: /^\S+@example\.com\nacc_\w+\n\d+\.\d\d\/20 sandbox-hours this month\n1\/2 concurrent sandboxes\n$/,
    json: ['email', 'usage', 'concurrent'],
  },
  {
    line: 'whoami --usage',
    piped: new RegExp(`^${created}\t\t${time}\t\\d+\\.\\d{3}\ntotal\t20\\d\\d-\\d\\d\t${time}\t\\S+\n$`),
    terminal: new RegExp(`^ID +NAME +CREATED +SECONDS\n${created} +${ago}`),
    json: ['data', 'total', 'month'],
  },
  {
    line: 'config show',
    piped: /^base_url +http\S+ +\(.*\)\napi_key +…\w{4} /,
    json: ['base_url', 'api_key', 'file', 'profiles'],
  },
  { line: 'config set-url BASE', piped: /^$/, terminal: /^Saved http/, json: ['base_url', 'file'] },
  { line: 'openapi', piped: /^\{\n {2}"openapi": "3/, json: ['openapi', 'paths'] },
  {
    line: 'session create --rm -- echo ran',
    piped: /^ran\n$/,
    json: ['sandbox_id', 'exit_code', 'stdout', 'status'],
  },
  { line: 'exec -- echo ran', piped: /^ran\n$/, json: ['id', 'exit_code', 'stdout'] },
  {
    line: 'session update --ttl 10m --idle-timeout 5m --metadata team=red',
    piped: new RegExp(`^${created}\n$`),
    terminal: new RegExp(`^${created}\nIt ends in 10 min\\.\n$`),
    json: ['id', 'metadata', 'expires_at', 'idle_timeout_seconds'],
  },
  { line: 'session reset --yes', piped: new RegExp(`^${created}\n$`), json: ['id', 'state'] },
]

const fill = (line: string) =>
  line.split(' ').map((word) => word.replace('HOME', user.home.folder).replace('BASE', world.url()))

async function onTerminal(args: string[], columns = 120, { home }: Pick<SessionUser, 'home'> = user) {
  const terminal = openTerminal(
    ['sh', '-c', `stty cols ${columns}; exec "$@"`, 'sh', process.execPath, clientPath, ...args],
    home.environment({ NO_COLOR: '1' }),
  )
  const code = await terminal.ended
  // On a slow machine, a progress line is drawn and then overwritten.
  const left = terminal
    .screen()
    .split('\n')
    .map((line) => line.split('\r\u001b[2K').at(-1))
    .join('\n')
  return { text: stripVTControlCharacters(left).replaceAll('\r\n', '\n'), code }
}

test.each(walk)(
  'the command $line prints the expected text and JSON',
  async ({ line, piped, note, terminal, json }) => {
    const args = fill(line)
    const command = args.indexOf('--')
    const withJson = command < 0 ? [...args, '--json'] : args.toSpliced(command, 0, '--json')
    // Sequential, because two concurrent sessions may exceed the quota.
    const plain = await user.run(args)
    expect(plain.code).toBe(0)
    expect(plain.stderr).toMatch(note ?? /^$/)
    expect(plain.stdout).toMatch(piped)
    const asJson = await user.run(withJson)
    expect(asJson).toMatchObject({ code: 0, stderr: '' })
    expect(Object.keys(asJson.json())).toEqual(expect.arrayContaining(json))
    const seen = await onTerminal(args)
    expect(seen.text).toMatch(terminal ?? note ?? piped)
    expect(seen.code).toBe(0)
  },
)

/** Commands that have separate tests. */
const elsewhere = `
signup, login, logout, cp, forward, ps, logs, kill, attach, ls, rm, version, session create,
session rm, session use, files edit, files mv, files watch, allowlist set, secrets create,
secrets ls, secrets rm, keys create, keys ls, keys rotate, keys rm, account password,
account end-sessions, account delete, mcp serve, mcp init, mcp doctor, config set-key, doctor,
completion`
  .trim()
  .split(/,\s+/)

const names = (branch: Branch, before = ''): string[] =>
  Object.entries(branch).flatMap(([name, entry]) => {
    if ('commands' in entry) return names(entry.commands, `${before}${name} `)
    return 'hidden' in entry ? [] : [`${before}${name}`]
  })

test('every command has an output test here or is listed as tested elsewhere', () => {
  const walked = (name: string) => walk.some(({ line }) => line === name || line.startsWith(`${name} `))
  expect(names(commands).filter((name) => !walked(name) && !elsewhere.includes(name))).toEqual([])
})

test('each command reports an unreachable service and exits with code 8', async () => {
  const away = { ...user.home.through('http://127.0.0.1:1'), SANDLOT_SESSION: user.id }
  const lines = [
    ...walk.map(({ line }) => line).filter((line) => !line.startsWith('config')),
    'session create',
    'session rm --yes',
    'session rm --all --yes',
    'files edit notes.txt --old one --new two',
    'files mv notes.txt moved.txt',
    'files watch',
    'allowlist set ls',
    'secrets ls',
    'secrets rm --yes NAME',
  ]
  const runs = lines.map((line) => async () => ({
    line,
    ...(await user.run(['--json', ...fill(line)], { env: away })),
  }))
  for (const { line, code, json, stderr } of await together(runs)) {
    const runsOne = /^exec|--rm/.test(line)
    expect(code, line).toBe(runsOne ? 125 : 8)
    expect(json().error, line).toMatchObject({ code: 'network', exit_code: code })
    expect(stderr, line).toContain('http://127.0.0.1:1 refused the connection.\nCheck the address')
  }
})

/** Runs the commands eight at a time, because each pauses between retries. */
async function together<T>(works: (() => Promise<T>)[]): Promise<T[]> {
  const limit = pLimit(8)
  return await Promise.all(works.map((work) => limit(work)))
}

describe('keys', () => {
  const ask = (...args: string[]) => ['keys', ...args, '--email', user.email, '--password-stdin']
  const input = { input: password }

  test('`keys create` prints a working key with the requested name and lifetime', async () => {
    const made = await user.run(ask('create', '--name', 'ci', '--ttl', '1h'), input)
    expect(made).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringMatching(/^sandlot_live_\w{49}\n$/),
    })
    const key = made.stdout.trim()
    expect(await user.run(['whoami'], { env: { SANDLOT_API_KEY: key } })).toMatchObject({ code: 0 })
    const { data } = (await user.run([...ask('ls'), '--json'], input)).json()
    const [ci] = data.filter(({ name }: { name: string | null }) => name === 'ci')
    expect(Date.parse(ci.expires_at) - Date.parse(ci.created_at)).toBeGreaterThan(3_500_000)
    expect(key.endsWith(ci.last_four)).toBe(true)
  })

  test('`keys create --save` saves the new key in the settings file', async () => {
    using other = await users.newUser()
    const args = ['keys', 'create', '--save', '--json=key,id', '--email', other.email, '--password-stdin']
    const { key, id } = (await other.run(args, input)).json()
    expect(parse(readFileSync(other.home.configFile, 'utf8')).api_key).toBe(key)
    const rm = ['keys', 'rm', id, '--email', other.email, '--password-stdin']
    expect(await other.run(rm, input)).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') })
    expect(await other.run(['whoami'])).toMatchObject({ code: 0 })
    expect(await other.run([...rm, '--yes'], input)).toMatchObject({ code: 0, stdout: `${id}\n` })
    await eventually(async () => (await other.run(['whoami'])).code === 4, 10_000)
  })

  test.each(['create', 'rotate'])(
    '`keys %s --save` prints the key even if it cannot be saved',
    async (verb) => {
      using other = await users.newUser()
      const with_ = ['--save', '--email', other.email, '--password-stdin']
      const [{ id }] = (await other.run(['keys', 'ls', '--json', ...with_.slice(1)], input)).json().data
      const args = ['keys', verb, ...(verb === 'rotate' ? [id, '--overlap', '0'] : []), ...with_]
      const env = { SANDLOT_URL: world.url(), XDG_CONFIG_HOME: '/sys' }
      const unsaved = await other.run(args, { ...input, env })
      expect(unsaved.code).toBe(2)
      expect(unsaved.stderr).toMatch(/^sandlot: The key was created, but could not be saved\. /)
      const works = await other.run(['whoami'], { env: { SANDLOT_API_KEY: unsaved.stdout.trim() } })
      expect(works).toMatchObject({ code: 0 })
    },
  )

  test('`keys create --save --json` includes a key that cannot be saved in the error', async () => {
    const env = { SANDLOT_URL: world.url(), XDG_CONFIG_HOME: '/sys' }
    const { error } = (await user.run(ask('create', '--save', '--json'), { ...input, env })).json()
    expect(error.key).toMatch(/^sandlot_live_\w{49}$/)
  })

  test('`keys rm` and `keys rotate` accept the name of a key if the name is unique', async () => {
    for (const name of ['one', 'two', 'two']) await user.run(ask('create', '--name', name), input)
    expect(await user.run(ask('rm', 'one'), input)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^key_\w+\n$/),
    })
    expect(await user.run(ask('rotate', 'one'), input)).toMatchObject({ code: 3 })
    const both = await user.run(ask('rm', 'two', '--json'), input)
    expect(both.json().error).toMatchObject({ code: 'several_keys', exit_code: 5 })
    expect(both.stderr.match(/^ {2}key_\w+ {2}…\w{4}$/gm)).toHaveLength(2)
  })

  test('a key created with --scope run cannot change the allowlist', async () => {
    const { stdout } = await user.run(ask('create', '--scope', 'run', '--name', 'agent'), input)
    const env = { SANDLOT_API_KEY: stdout.trim() }
    expect((await user.run(ask('ls'), input)).stdout).toMatch(/\tagent\trun\t/)
    expect((await user.run(['whoami'], { env })).stdout).toContain('scope run')
    const refused = await user.run(['allowlist', 'clear', '--yes'], { env })
    expect(refused).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('sandlot keys create --scope full'),
    })
  })

  test('`keys rotate` replaces a key, and the old key stays valid for the requested overlap', async () => {
    using other = await users.newUser()
    const with_ = ['--email', other.email, '--password-stdin']
    const [{ id }] = (await other.run(['keys', 'ls', '--json', ...with_], input)).json().data
    const first = await other.run(['keys', 'rotate', id, '--save', ...with_], input)
    expect(first).toMatchObject({ code: 0, stdout: expect.stringMatching(/^sandlot_live_\w{49}\n$/) })
    expect(parse(readFileSync(other.home.configFile, 'utf8')).api_key).toBe(first.stdout.trim())
    const { data } = (await other.run(['keys', 'ls', '--json', ...with_], input)).json()
    expect(data.map((key: { name: string }) => key.name)).toEqual([data[0].name, data[0].name])
    expect(Date.parse(data[1].expires_at) - Date.now()).toBeGreaterThan(3_000_000)
    const second = await other.run(['keys', 'rotate', data[0].id, '--overlap', '0', ...with_], input)
    const env = { SANDLOT_API_KEY: second.stdout.trim() }
    await eventually(async () => (await other.run(['whoami'])).code === 4, 10_000)
    expect(await other.run(['whoami'], { env })).toMatchObject({ code: 0 })
    expect(await other.run(['keys', 'rotate', id, '--overlap', 'soon', ...with_], input)).toMatchObject({
      code: 2,
    })
  })
})

test('to fit the terminal, a table truncates the widest column first and the id column last', async () => {
  using owner = await users.newUser()
  const name = '長い名前 with many words, so many that they fill a line'
  const id = (await owner.run(['session', 'create', '--name', name, '--async'])).stdout.trim()
  const seen = async (columns: number) =>
    (await onTerminal(['session', 'ls'], columns, owner)).text.trimEnd().split('\n')
  expect((await seen(200))[1]).toContain(name)
  const [head, row] = await seen(80)
  expect(row).toMatch(new RegExp(`^${id}  .*長い.*…  .*in \\d+ min$`))
  expect(row).not.toContain(name)
  // Each of the four letters takes two columns.
  expect(row!.length + 4).toBeLessThanOrEqual(80)
  expect(head!.indexOf('ENDS')).toBe(row!.search(/in \d+ min$/) + 4)
  for (const line of await seen(40)) expect(line.length).toBeLessThanOrEqual(40)
  expect((await owner.run(['session', 'ls'])).stdout).toContain(`\t${name}\t`)
  await owner.run(['session', 'rm', '--yes'])
})

test('--quiet prints only ids on stdout and nothing on stderr', async () => {
  expect(await user.run(['session', 'ls', '--quiet'])).toMatchObject({ stdout: `${user.id}\n`, stderr: '' })
  expect((await onTerminal(['session', 'ls', '-q'])).text).toBe(`${user.id}\n`)
  expect((await onTerminal(['files', 'create', 'q', '--content', 'x', '--overwrite', '-q'])).text).toBe(
    '/workspace/q\n',
  )
  await user.run(['secrets', 'create', 'QUIET'], { input: 'x'.repeat(20) })
  expect((await user.run(['secrets', 'ls', '--quiet'])).stdout).toBe('QUIET\n')
})

test('--json=FIELDS prints only the given fields of each list entry', async () => {
  const { stdout } = await user.run(['session', 'ls', '--json=state,id'])
  expect(stdout).toBe(`{"data":[{"state":"active","id":"${user.id}"}],"next_cursor":null}\n`)
  const { entries, path } = (await user.run(['files', 'ls', '--json=name', 'notes.txt'])).json()
  expect({ entries, path }).toEqual({ entries: [{ name: 'notes.txt' }], path: '/workspace/notes.txt' })
})
