import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { clientPath, Home, settingsFor } from './client.ts'

const configured = settingsFor('http://127.0.0.1:1')

test('`sandlot` without a command prints help to stderr and exits with code 2', async () => {
  using home = new Home()
  const { code, stdout, stderr } = await home.run([])
  expect(code).toBe(2)
  expect(stdout).toBe('')
  for (const name of ['signup', 'session', 'exec', 'files', 'whoami', 'keys', 'config'])
    expect(stderr).toContain(name)
})

test('--version prints the package version', async () => {
  using home = new Home()
  const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '..', '..', 'package.json'), 'utf8'))
  for (const flag of ['--version', '-V', 'version']) {
    expect(await home.run([flag])).toMatchObject({ code: 0, stdout: `${version}\n`, stderr: '' })
  }
})

test("--help prints a command's options to stdout", async () => {
  using home = new Home()
  const [whole, flag, word] = await Promise.all([
    home.run(['--help']),
    home.run(['session', 'create', '--help']),
    home.run(['help', 'session', 'create']),
  ])
  expect(whole).toMatchObject({ code: 0, stderr: '' })
  expect(whole.stdout).toContain('Exit codes')
  expect(flag).toMatchObject({ code: 0, stderr: '' })
  expect(flag.stdout).toContain('--ttl')
  expect(word.stdout).toBe(flag.stdout)
})

const wrong: string[][] = [
  ['nonsense'],
  ['session'],
  ['session', 'nonsense'],
  ['session', 'ls', '--nonsense'],
  ['session', 'ls', '--state', 'nonsense'],
  ['session', 'ls', '--limit', '0'],
  ['session', 'get', 'a', 'b'],
  ['secrets', 'rm', '--yes', '..'],
  ['session', 'create', '--ttl', 'soon'],
  ['session', 'create', '--metadata', 'nonsense'],
  ['files', 'view'],
  ['files', 'view', 'a', '--lines', '7:3'],
  ['files', 'view', 'a', '--lines', '0:3'],
  ['files', 'create', 'a'],
  ['files', 'create', 'a', '--content', 'x', '--from-file', 'y'],
  ['keys', 'rm'],
  ['keys', 'ls'],
  ['keys', 'ls', '--email', 'a@example.com'],
  ['signup'],
  ['signup', '--email', 'a@example.com'],
  ['signup', '--email', 'a@example.com', '--password', 'x', '--password-stdin'],
  ['config', 'set-url'],
]

describe('invalid usage', () => {
  test.each(wrong.map((args) => [args]))('rejects %j with code 2 and a reason on stderr', async (args) => {
    using home = new Home()
    const plain = await home.run(args, { env: configured })
    expect(plain.stderr).not.toBe('')
    expect(plain.stdout).toBe('')
    expect(plain.code).toBe(2)
    const json = await home.run([...args, '--json'], { env: configured })
    expect(json.json().error).toMatchObject({ code: 'usage', exit_code: 2 })
    expect(json.code).toBe(2)
  })

  const wrongExec = [
    [],
    ['--nonsense', 'true'],
    ['-c', 'true', '--', 'true'],
    ['--timeout', 'x', 'true'],
    ['--env', '=', 'true'],
  ]
  test.each(wrongExec.map((args) => [args]))(
    'exec %j exits with code 125, because 2 may be the exit code of the command',
    async (args) => {
      using home = new Home()
      const { code, json } = await home.run(['exec', '--json', ...args], { env: configured })
      expect(json().error.exit_code).toBe(125)
      expect(code).toBe(125)
    },
  )
})

test.each([
  ['a base address', {}, 2, 'sandlot signup --url URL'],
  ['an API key', { SANDLOT_URL: 'http://127.0.0.1:1' }, 4, 'sandlot signup'],
])('a command without %s exits with an error that names the command to run', async (_, env, code, hint) => {
  using home = new Home()
  expect(await home.run(['whoami'], { env })).toMatchObject({ code, stderr: expect.stringContaining(hint) })
})

test('with --json, a failure prints one JSON object to stdout and the message to stderr', async () => {
  using home = new Home()
  const { code, json, stderr } = await home.run(['whoami', '--json'], { env: configured })
  expect(code).toBe(8)
  expect(json()).toEqual({
    error: { code: 'network', exit_code: 8, message: expect.any(String), hint: expect.any(String) },
  })
  expect(stderr).toContain(json().error.message)
})

test('the built client contains no schema library', () => {
  const folder = dirname(clientPath)
  const scripts = readdirSync(folder).filter((name) => name.endsWith('.js'))
  expect(scripts.length).toBeGreaterThan(10)
  for (const name of scripts)
    expect(readFileSync(join(folder, name), 'utf8')).not.toMatch(/ZodObject|from ["']zod/)
})
