/** `sandlot mcp serve` and `mcp doctor` between an agent and a real service. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { describe, expect, test } from 'vitest'
import { tools } from '../../shared/contract/mcp.ts'
import { quote } from '../../shared/contract/shell-words.ts'
import { shareWorld } from '../support/shared.ts'
import { clientPath, Home } from './client.ts'
import { openTerminal } from './terminal.ts'
import { makeUsers } from './users.ts'

const world = shareWorld({ apis: 2 })
const { newUser } = makeUsers(world)

async function connect(home: Home): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' })
  const args = [clientPath, 'mcp', 'serve']
  await client.connect(
    new StdioClientTransport({ command: process.execPath, args, env: home.environment() }) as never,
  )
  return client
}

interface Result {
  isError?: boolean
  structuredContent?: Record<string, unknown>
  content: { text: string }[]
}

async function use(client: Client, name: string, args: object): Promise<Record<string, unknown>> {
  const result = (await client.callTool({ name, arguments: { ...args } })) as Result
  expect(result.isError, result.content[0]?.text).toBeFalsy()
  return result.structuredContent!
}

const lines = (...messages: object[]) => messages.map((message) => `${JSON.stringify(message)}\n`).join('')
const ping = (id: number | string) => ({ jsonrpc: '2.0', id, method: 'ping' })
const read = (stdout: string) =>
  stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))

test('an agent can create, use, search and destroy a session over stdio', async () => {
  using user = await newUser()
  const client = await connect(user.home)
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(Object.keys(tools))
  const { id: session_id } = await use(client, 'session_create', {})
  const file = { session_id, path: 'a.txt' }
  await use(client, 'exec', { session_id, command: 'printf "one\\ntwo\\u2028\\n" > a.txt' })
  await use(client, 'file_edit', { ...file, old: 'one', new: 'uno \u2028' })
  expect(await use(client, 'file_grep', { session_id, pattern: 'uno' })).toMatchObject({
    matches: [{ path: 'a.txt', line: 1, text: 'uno \u2028' }],
  })
  expect(await use(client, 'session_destroy', { session_id })).toMatchObject({ state: 'destroyed' })
  await client.close()
})

test('the MCP server ignores a byte order mark before the first message', async () => {
  using user = await newUser()
  const { stdout } = await user.run(['mcp', 'serve'], { input: `\ufeff${lines(ping(1))}` })
  expect(JSON.parse(stdout)).toEqual({ jsonrpc: '2.0', id: 1, result: {} })
})

describe('MCP server errors', () => {
  const serve = (home: Home, input: string, env = {}) => home.run(['mcp', 'serve'], { input, env })

  test('without settings, the MCP server names the command that creates the settings file', async () => {
    using home = new Home()
    const { stdout, code } = await serve(home, lines(ping(1), ping('two')))
    expect(code).toBe(0)
    expect(read(stdout)).toMatchObject([
      { jsonrpc: '2.0', id: 1, error: { code: -32000, data: { code: 'no_address' } } },
      { jsonrpc: '2.0', id: 'two', error: { message: expect.stringContaining('sandlot signup --url') } },
    ])
  })

  test('the MCP server reports an unreachable service and a rejected key', async () => {
    using home = new Home()
    const key = { SANDLOT_API_KEY: 'sandlot_live_wrong' }
    const away = await serve(home, lines(ping(1)), { ...key, SANDLOT_URL: 'http://localhost:1' })
    expect(away.json().error.message).toContain('http://localhost:1 refused the connection')
    const refused = await serve(home, lines(ping(1)), { ...key, SANDLOT_URL: world.url() })
    expect(refused.json().error).toMatchObject({ data: { code: 'invalid_credentials', status: 401 } })
  })

  test('the MCP server reports an invalid message and handles the next message', async () => {
    using user = await newUser()
    const { stdout } = await serve(user.home, `nonsense\n\n${lines(ping(2))}`)
    expect(read(stdout)).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ id: null, error: expect.objectContaining({ code: -32700 }) }),
        { jsonrpc: '2.0', id: 2, result: {} },
      ]),
    )
  })
})

test('`mcp serve` rejects a line that contains no JSON-RPC message, and continues', async () => {
  using user = await newUser()
  const input = `[null]\n"text"\n${lines(ping(1))}`
  const { code, stdout } = await user.run(['mcp', 'serve'], { input })
  const invalid = { id: null, error: { code: -32_700 } }
  expect(read(stdout)).toMatchObject([invalid, invalid, { id: 1, result: {} }])
  expect(code).toBe(0)
})

test('`mcp doctor` runs `true` through the entry written by `mcp init`, and reports failures', async () => {
  using user = await newUser()
  expect(await user.run(['mcp', 'doctor'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('mcp init'),
  })
  await user.run(['mcp', 'init', 'cursor'])
  const good = await user.run(['mcp', 'doctor', 'cursor'])
  const file = join(user.home.folder, '.cursor', 'mcp.json')
  expect(good).toMatchObject({ code: 0, stdout: `${file}: works\n` })
  expect(good.stderr).toContain(`ok    tools/list  ${Object.keys(tools).length} tools`)
  expect((await user.run(['whoami'])).stdout).toContain('\n0/2 concurrent sandboxes\n')

  await user.run(['mcp', 'init', 'gemini', '--http'])
  expect(await user.run(['mcp', 'doctor', 'gemini'])).toMatchObject({ code: 0 })

  expect(readFileSync(file, 'utf8')).not.toContain('sandlot_live_')
  writeFileSync(file, JSON.stringify({ mcpServers: { sandlot: { command: '/no/such/node', args: [] } } }))
  expect(await user.run(['mcp', 'doctor', 'cursor'])).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('/no/such/node does not start'),
  })
})

describe('`mcp doctor` in an untrusted folder', () => {
  /** Creates a project with an untrusted entry. The entry creates a file if it runs. */
  function makeProject(home: Home, more: object = {}) {
    const folder = join(home.folder, 'cloned')
    const trace = join(home.folder, 'started')
    mkdirSync(folder, { recursive: true })
    const args = ['-e', `require('node:fs').writeFileSync(${JSON.stringify(trace)}, '')`]
    const entry = { type: 'stdio', command: process.execPath, args, ...more }
    writeFileSync(join(folder, '.mcp.json'), JSON.stringify({ mcpServers: { sandlot: entry } }))
    const doctor = (...words: string[]) => home.run(['mcp', 'doctor', ...words], { cwd: folder })
    return { folder, doctor, isStarted: () => existsSync(trace) }
  }

  test("`mcp doctor` does not start servers from a project's settings without --scope project", async () => {
    using home = new Home()
    const { doctor, isStarted } = makeProject(home)
    for (const words of [[], ['claude-code'], ['--yes'], ['claude-code', '--scope', 'user']]) {
      const ran = await doctor(...words)
      expect(ran).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('--scope project') })
      expect(isStarted()).toBe(false)
    }
  })

  test.each([
    ['another program', {}],
    ['an environment variable', { args: [clientPath, 'mcp', 'serve'], env: { A: 'b' } }],
    ['args that are not a list', { command: 'sandlot', args: 'mcp serve' }],
  ])('`mcp doctor --scope project` shows an entry with %s and starts it only with --yes', async (_, more) => {
    using home = new Home()
    const { doctor, isStarted } = makeProject(home, more)
    const refused = await doctor('--scope', 'project')
    expect(refused).toMatchObject({ code: 1, stdout: expect.stringContaining('Not started') })
    expect(refused.stdout).toContain('--yes')
    expect(isStarted()).toBe(false)
    await doctor('--scope', 'project', '--yes')
    expect(isStarted()).toBe(!('args' in more))
  })

  test('`mcp doctor --scope project` asks for confirmation before it starts the server that `mcp init` configured', async () => {
    using user = await newUser()
    const { folder, doctor } = makeProject(user.home)
    await user.run(['mcp', 'init', 'claude-code', '--scope', 'project'], { cwd: folder })
    expect(await doctor('--scope', 'project')).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('Prompts need a terminal. Pass --yes'),
    })
    expect(await doctor('--scope', 'project', '--yes')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('.mcp.json: works'),
    })
    const line = `cd ${quote(folder)} && exec "$@"`
    const words = [process.execPath, clientPath, 'mcp', 'doctor', '--scope', 'project']
    const terminal = openTerminal(['sh', '-c', line, 'sh', ...words], user.home.environment())
    await terminal.shows('mcp serve?')
    terminal.type('n\r')
    await terminal.shows('The server was not started')
    expect(await terminal.ended).toBe(1)
  })
})
