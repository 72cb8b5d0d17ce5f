import { expect, test } from 'vitest'
import { pick } from '../../cli/core/json-fields.ts'
import { Home, settingsFor } from './client.ts'
import { startPeer } from './peer.ts'

const nowhere = settingsFor('http://127.0.0.1:1')

const account = {
  id: 'acc_1',
  email: 'ada@example.com',
  created_at: '2026-11-01T00:00:00.000Z',
  usage: { month: '2026-11', milliseconds: 0, sandbox_hours: 0, limit: 20 },
  concurrent: { active: 1, limit: 2 },
  limits: {},
}
const answerAccount = () =>
  startPeer((_, response) => response.setHeader('x-request-id', 'req_abc').end(JSON.stringify(account)))

test('--json=FIELD,FIELD prints the named fields in order', async () => {
  using home = new Home()
  await using peer = await answerAccount()
  for (const args of [
    ['whoami', '--json=email,concurrent'],
    ['--json=email,concurrent', 'whoami'],
    ['whoami', '--json', '--json= email , concurrent'],
  ]) {
    const { stdout } = await home.run(args, { env: settingsFor(peer.url) })
    expect(stdout).toBe('{"email":"ada@example.com","concurrent":{"active":1,"limit":2}}\n')
  }
})

test('--json=PATH prints a nested field of an object or of each list entry', async () => {
  using home = new Home()
  await using peer = await answerAccount()
  const shown = async (parts: string) =>
    (await home.run(['whoami', `--json=${parts}`], { env: settingsFor(peer.url) })).stdout
  expect(await shown('usage.limit,email,usage.month')).toBe(
    '{"usage":{"limit":20,"month":"2026-11"},"email":"ada@example.com"}\n',
  )
  expect(await shown('concurrent.limit,concurrent')).toBe('{"concurrent":{"active":1,"limit":2}}\n')
  expect(await shown('usage.limit.nothing')).toBe('{"usage":{"limit":{"nothing":null}}}\n')
  const list = { data: [{ a: { b: [{ c: 1, d: 2 }, { c: 3 }] }, e: 4 }], next_cursor: null }
  expect(pick(list, ['a.b.c'], { fields: ['a', 'e'] })).toEqual({
    data: [{ a: { b: [{ c: 1 }, { c: 3 }] } }],
    next_cursor: null,
  })
  for (const wrong of ['usage.', '.usage', 'use.limit'])
    expect(await home.run(['whoami', `--json=${wrong}`], { env: nowhere })).toMatchObject({ code: 2 })
})

test('--json rejects an unknown field before sending any request', async () => {
  using home = new Home()
  await using peer = await answerAccount()
  const { code, json, stderr } = await home.run(['whoami', '--json=email,mail'], {
    env: settingsFor(peer.url),
  })
  expect(code).toBe(2)
  expect(json().error).toMatchObject({ code: 'usage', exit_code: 2 })
  expect(json().error.fields).toContain('email')
  expect(stderr).toContain("mail.\nThe fields of this command's result are id, email,")
  expect(await home.run(['whoami', '--json='], { env: settingsFor(peer.url) })).toMatchObject({ code: 2 })
  expect(peer.asked).toEqual([])
})

test('--json does not treat the next argument as a list of fields', async () => {
  using home = new Home()
  const { json, code } = await home.run(['session', 'get', '--json', 'sbx_a'], { env: nowhere })
  expect(code).toBe(8)
  expect(json().error.code).toBe('network')
})

test('--debug shows the status, duration and id of each request, but no secrets', async () => {
  using home = new Home()
  await using peer = await startPeer((_, response) =>
    response.writeHead(404, { 'x-request-id': 'req_abc' }).end('{"secret_member": "hush"}'),
  )
  const args = ['files', 'view', 'secret-path', '--debug', '--quiet']
  const env = settingsFor(peer.url)
  const { stderr } = await home.run(args, { env })
  const [line] = stderr.split('\n')
  expect(line).toMatch(/^debug: GET \/v1\/sandboxes\/sbx_a\/files\/raw 404 \d+ ms req_abc$/)
  for (const hidden of [env.SANDLOT_API_KEY, 'secret-path', 'hush', 'Bearer'])
    expect(stderr).not.toContain(hidden)
  const body = ['secrets', 'create', 'TOKEN', '--debug']
  const created = await home.run(body, { env, input: 'very-hidden' })
  expect(created.stderr).toMatch(/^debug: POST \/v1\/secrets 404/)
  expect(created.stderr).not.toContain('very-hidden')
})

test('--debug shows each attempt that receives no response', async () => {
  using home = new Home()
  const { stderr } = await home.run(['whoami', '--debug'], { env: nowhere })
  expect(stderr.match(/^debug: GET \/v1\/account http:.* refused the connection\. \d+ ms$/gm)).toHaveLength(3)
})

test.each([
  ['signup', ['signup', '--url', 'http://127.0.0.1:1'], '--email and --password-stdin'],
  ['keys ls', ['keys', 'ls'], '--email and --password-stdin'],
  ['secrets rm', ['secrets', 'rm', 'A'], '--yes'],
  ['secrets create', ['secrets', 'create', 'A'], '--from-file'],
  ['config set-key', ['config', 'set-key'], 'API_KEY'],
  ['files edit', ['files', 'edit', 'a'], '--old and --new'],
])('on a terminal, `%s --no-input` fails and names the missing argument', async (_, args, instead) => {
  using home = new Home()
  for (const words of [
    [...args, '--no-input'],
    ['--no-input', ...args],
  ]) {
    const terminal = home.open(words, nowhere)
    await terminal.shows('--no-input')
    await terminal.shows(instead)
    expect(await terminal.ended).toBe(2)
  }
})

test('--color overrides FORCE_COLOR, which overrides NO_COLOR', async () => {
  using home = new Home()
  // Fails before any request is sent.
  const refused = ['session', 'ls', '--limit', '0']
  const isColored = async (args: string[], more = {}) =>
    (await home.run([...refused, ...args], { env: { ...nowhere, ...more } })).stderr.includes('\u001b[31m')
  expect(await isColored([])).toBe(false)
  expect(await isColored(['--color', 'always'], { NO_COLOR: '1', FORCE_COLOR: '0' })).toBe(true)
  expect(await isColored(['--color', 'never'], { FORCE_COLOR: '1' })).toBe(false)
  expect(await isColored([], { FORCE_COLOR: '1', NO_COLOR: '1' })).toBe(true)
  expect(await isColored([], { FORCE_COLOR: '0' })).toBe(false)
  expect((await home.run([...refused, '--color', 'blue'], { env: nowhere })).stderr).toContain('auto, always')

  const atTerminal = async (more: Record<string, string>) => {
    const terminal = home.open(refused, { ...nowhere, ...more })
    await terminal.ended
    return terminal.screen().includes('\u001b[31m')
  }
  expect(await atTerminal({})).toBe(true)
  expect(await atTerminal({ NO_COLOR: '1' })).toBe(false)
  expect(await atTerminal({ TERM: 'dumb' })).toBe(false)
})

test('`help` prints the topics `exit-codes` and `settings`', async () => {
  using home = new Home()
  const codes = await home.run(['help', 'exit-codes'])
  expect(codes).toMatchObject({ code: 0, stderr: '' })
  for (const line of ['0  done', '125  the client', '130  interrupted']) expect(codes.stdout).toContain(line)
  const settings = await home.run(['help', 'settings'])
  expect(settings).toMatchObject({ code: 0, stderr: '' })
  expect(settings.stdout).toContain('SANDLOT_PROFILE')
  const alias = await home.run(['help', 'session', 'list'])
  expect(alias).toMatchObject({ code: 0, stdout: expect.stringContaining('Usage: sandlot session ls|list') })
  expect(await home.run(['help', 'nonsense'])).toMatchObject({ code: 2, stdout: '' })
})
