/** /v1/mcp, as the SDK's own client sees it, over HTTP. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { toolLimits, tools } from '../../shared/contract/mcp.ts'
import { newSandboxId } from '../../shared/data/ids.ts'
import type { Account } from '../support/account.ts'
import { send } from '../support/http.ts'
import { startWorld, type World } from '../support/index.ts'
import { mcpRequest, toolCall } from '../support/mcp.ts'

let world: World
let alice: Account

beforeAll(async () => {
  world = await startWorld({ apis: 2 })
  alice = await world.account()
}, 120_000)
afterAll(() => world[Symbol.asyncDispose](), 60_000)

/** @param api which process answers; `each` goes from one to the next with every request */
async function connect(account: Account, api: number | 'each' = 0, of: World = world): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' })
  let turn = 0
  const transport = new StreamableHTTPClientTransport(new URL(`${of.url(api === 'each' ? 0 : api)}/v1/mcp`), {
    requestInit: { headers: { authorization: `Bearer ${account.key}` } },
    ...(api === 'each'
      ? { fetch: (_, init) => fetch(`${of.url(turn++ % of.apis.length)}/v1/mcp`, init) }
      : {}),
  })
  await client.connect(transport as never)
  return client
}

interface Result {
  isError?: boolean
  structuredContent?: Record<string, unknown>
  content: { type: string; text: string }[]
}

const call = async (client: Client, name: string, args: object = {}, options = {}) =>
  (await client.callTool({ name, arguments: { ...args } }, undefined, options)) as Result

/** What a tool gave, which must be no error. */
async function use<T = Record<string, unknown>>(client: Client, name: string, args: object = {}): Promise<T> {
  const result = await call(client, name, args)
  expect(result.isError, result.content[0]?.text).toBeFalsy()
  expect(JSON.parse(result.content[0]!.text)).toEqual(result.structuredContent)
  return result.structuredContent as T
}

/** What a tool refused with. */
async function refusalOf(client: Client, name: string, args: object = {}): Promise<Record<string, unknown>> {
  const result = await call(client, name, args)
  expect(result.isError).toBe(true)
  return JSON.parse(result.content[0]!.text)
}

const post = (headers: Record<string, string>, body: unknown, key = alice.key, api = 0) =>
  send(`${world.url(api)}/v1/mcp`, mcpRequest({ key }, body, headers))
const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }

test('a client whose every request meets another API process works from create to destroy', async () => {
  const client = await connect(alice, 'each')
  const { id: session_id } = await use(client, 'session_create', { name: 'by an agent' })
  expect(await use(client, 'exec', { session_id, command: 'echo hello; exit 3' })).toMatchObject({
    status: 'exited',
    exit_code: 3,
    stdout: 'hello\n',
  })
  const file = { session_id, path: 'notes/a.txt' }
  await use(client, 'file_create', { ...file, content: 'one\ntwo\nthree\n' })
  expect(await use(client, 'file_edit', { ...file, old: 'two', new: 'zwei' })).toMatchObject({
    replacements: 1,
  })
  expect(await use(client, 'file_view', { ...file, start_line: 2, end_line: 2 })).toMatchObject({
    content: 'zwei\n',
  })
  const { entries } = await use<{ entries: { name: string }[] }>(client, 'file_list', { session_id })
  expect(entries.map(({ name }) => name)).toContain('notes')
  expect(await use(client, 'file_glob', { session_id, pattern: '**/*.txt' })).toMatchObject({
    paths: ['notes/a.txt'],
  })
  const { matches } = await use<{ matches: object[] }>(client, 'file_grep', {
    session_id,
    pattern: 'ZWEI',
    ignore_case: true,
  })
  expect(matches).toMatchObject([{ line: 2, text: 'zwei' }])
  expect(await use(client, 'session_get', { session_id })).toMatchObject({ state: 'active' })
  expect(await use(client, 'session_list', { state: 'active' })).toMatchObject({ data: [{ id: session_id }] })
  expect(await use(client, 'whoami')).toMatchObject({ email: alice.email, concurrent: { active: 1 } })
  expect(await use(client, 'session_destroy', { session_id })).toMatchObject({ state: 'destroyed' })
  expect(await refusalOf(client, 'exec', { session_id, command: 'true' })).toMatchObject({
    code: 'sandbox_destroyed',
    next: expect.stringContaining('session_create'),
  })
  await client.close()
})

describe('tools/list', () => {
  test('names every tool with its schemas and all its annotations, and none that touches credentials', async () => {
    const client = await connect(alice)
    const { tools: listed } = await client.listTools()
    expect(listed.map(({ name }) => name)).toEqual(Object.keys(tools))
    for (const { name, title, description, inputSchema, outputSchema, annotations } of listed) {
      expect({ name, title, description }).toEqual({
        name,
        title: expect.any(String),
        description: expect.any(String),
      })
      expect(annotations).toEqual({
        title,
        readOnlyHint: expect.any(Boolean),
        destructiveHint: expect.any(Boolean),
        idempotentHint: expect.any(Boolean),
        openWorldHint: expect.any(Boolean),
      })
      expect(inputSchema).toMatchObject({ type: 'object', additionalProperties: false })
      expect(outputSchema).toMatchObject({ type: 'object', properties: expect.any(Object) })
      expect(JSON.stringify([inputSchema, outputSchema])).not.toMatch(/\$ref|\$defs|definitions/)
    }
    expect(JSON.stringify(Object.keys(tools))).not.toMatch(/key|secret|allowlist|login|signup/)
    const exec = listed.find(({ name }) => name === 'exec')!
    expect(exec.inputSchema.required).toEqual(['session_id', 'command'])
    expect(Object.keys(exec.inputSchema.properties!)).not.toContain('background')
    const grep = listed.find(({ name }) => name === 'file_grep')!
    expect(grep.inputSchema.properties!.ignore_case).toMatchObject({ type: 'boolean' })
    await client.close()
  })

  test('tells agents how to go about it', async () => {
    const client = await connect(alice)
    expect(client.getInstructions()).toContain('session_create')
    expect(client.getServerCapabilities()).toEqual({ tools: {} })
    await client.close()
  })
})

describe('errors', () => {
  test('wrong arguments are named, whether the tool or the route knows them', async () => {
    const client = await connect(alice)
    const session_id = `sbx_${'0'.repeat(26)}`
    const errors = async (name: string, args: object) => (await refusalOf(client, name, args)).errors
    expect(await errors('exec', { session_id })).toEqual([{ path: 'command', message: 'is required' }])
    expect(await errors('exec', { session_id, command: 'x', background: true })).toMatchObject([
      { path: 'background' },
    ])
    expect(await errors('session_create', { ttl_seconds: 0 })).toMatchObject([{ path: 'ttl_seconds' }])
    expect(await errors('file_grep', { session_id, pattern: 'x', fixed: 'maybe' })).toMatchObject([
      { path: 'fixed' },
    ])
    await client.close()
  })

  test("somebody else's session is no session, and a tool that there is not is an error of the protocol", async () => {
    const client = await connect(await world.account())
    const { body } = await alice.call('createSandbox')
    expect(await refusalOf(client, 'exec', { session_id: body.id, command: 'true' })).toMatchObject({
      code: 'not_found',
      status: 404,
      next: expect.stringContaining('session_list'),
      request_id: expect.stringMatching(/^req_/),
    })
    await alice.call('destroySandbox', { params: { id: body.id } })
    await expect(call(client, 'api_key_create')).rejects.toThrow('There is no tool api_key_create')
    await client.close()
  })

  test('the allowlist of the account holds for exec, and not for files', async () => {
    const bob = await world.account()
    const client = await connect(bob)
    const { id: session_id } = await use<{ id: string }>(client, 'session_create')
    await bob.call('setAllowlist', { body: { commands: ['ls'] } })
    await use(client, 'exec', { session_id, command: ['ls'] })
    expect(await refusalOf(client, 'exec', { session_id, command: ['id'] })).toMatchObject({
      code: 'command_not_allowed',
      next: expect.stringContaining('only the user'),
    })
    await use(client, 'file_create', { session_id, path: 'a', content: '' })
    await use(client, 'session_destroy', { session_id })
    await client.close()
  })

  test('the limits of the routes are those of the tools: same quota, same bucket, and retry_after', async () => {
    await using small = await startWorld({
      env: { QUOTA_CONCURRENT_SANDBOXES: '1', RATE_SANDBOX_OPS_PER_MINUTE: '3' },
    })
    const bob = await small.account()
    const client = await connect(bob, 0, small)
    const { id } = await use<{ id: string }>(client, 'session_create')
    expect(await refusalOf(client, 'session_create')).toMatchObject({
      code: 'concurrent_sandbox_limit_reached',
      retry_after: expect.any(Number),
      next: expect.stringContaining('session_destroy'),
    })
    const command = ['true']
    await use(client, 'exec', { session_id: id, command })
    await bob.call('execCommand', { params: { id }, body: { command } })
    await use(client, 'exec', { session_id: id, command })
    const limited = await refusalOf(client, 'exec', { session_id: id, command })
    expect(limited).toMatchObject({ code: 'rate_limited', status: 429 })
    expect(limited.retry_after).toBeGreaterThanOrEqual(1)
    await expect(bob.call('execCommand', { params: { id }, body: { command } })).rejects.toMatchObject({
      code: 'rate_limited',
    })
    await use(client, 'session_destroy', { session_id: id })
    await client.close()
  })
})

describe('long output', () => {
  let client: Client
  let session_id: string
  beforeAll(async () => {
    client = await connect(alice)
    session_id = (await use<{ id: string }>(client, 'session_create')).id
  })
  afterAll(async () => {
    await use(client, 'session_destroy', { session_id })
    await client.close()
  })

  test('of a command keeps head and tail, and says so', async () => {
    const command = 'echo first; head -c 200000 /dev/zero | tr "\\0" x; echo; echo last'
    const result = await call(client, 'exec', { session_id, command })
    const { stdout, truncated, stdout_bytes } = result.structuredContent as {
      stdout: string
      truncated: boolean
      stdout_bytes: number
    }
    expect(truncated).toBe(true)
    expect(stdout_bytes).toBe(200_012)
    expect(stdout.length).toBeLessThan(toolLimits.outputCharacters + 100)
    expect(stdout).toMatch(/^first\n[\s\S]*\n\[\.\.\. \d+ characters left out \.\.\.\]\n[\s\S]*last\n$/)
    expect(result.content[1]!.text).toContain('stdout was cut')
  })

  test('of a file ends at the end of a line, from where it can be read on', async () => {
    await use(client, 'exec', { session_id, command: 'seq 1 30000 > numbers' })
    const result = await call(client, 'file_view', { session_id, path: 'numbers' })
    const { content, truncated } = result.structuredContent as { content: string; truncated: boolean }
    expect(truncated).toBe(true)
    expect(content.length).toBeLessThanOrEqual(toolLimits.contentCharacters)
    const lines = content.trimEnd().split('\n')
    expect(lines.at(-1)).toBe(String(lines.length))
    expect(result.content[1]!.text).toContain(`after ${lines.length} lines`)
    expect(
      await use(client, 'file_view', {
        session_id,
        path: 'numbers',
        start_line: lines.length + 1,
        end_line: lines.length + 1,
      }),
    ).toMatchObject({ content: `${lines.length + 1}\n` })
  })

  test('of a list is cut at an entry', async () => {
    const command =
      'mkdir many; cd many; for i in $(seq 1 2000); do : > a-file-with-quite-a-long-name-$i; done'
    await use(client, 'exec', { session_id, command })
    const result = await call(client, 'file_glob', { session_id, pattern: 'many/*' })
    const { paths, truncated } = result.structuredContent as { paths: string[]; truncated: boolean }
    expect(truncated).toBe(true)
    expect(paths.length).toBeLessThan(2000)
    expect(JSON.stringify(paths).length).toBeLessThanOrEqual(toolLimits.listCharacters + 2)
    expect(result.content[1]!.text).toContain(`${paths.length} of 2000`)
  })
})

test('a long list of sessions is cut at one of them, and its cursor leads to the rest', async () => {
  const bob = await world.account()
  const metadata = Object.fromEntries(Array.from({ length: 32 }, (_, at) => [`key${at}`, 'x'.repeat(512)]))
  const ids = Array.from({ length: 9 }, () => newSandboxId())
  for (const id of ids) {
    await world.db.query(
      `insert into sandbox (id, account_id, image, metadata, created_at, expires_at, destroyed_at,
                            destroy_reason, reaped_at)
       values (?, ?, 'any', ?::jsonb, now(), now() + interval '1 hour', now(), 'requested', now())`,
      [id, bob.id, JSON.stringify(metadata)],
    )
  }
  const client = await connect(bob)
  const seen: string[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const result = await call(client, 'session_list', { limit: 8, ...(cursor && { cursor }) })
    const page = result.structuredContent as { data: { id: string }[]; next_cursor: string | null }
    expect(JSON.stringify(page).length).toBeLessThan(toolLimits.listCharacters + 100)
    seen.push(...page.data.map(({ id }) => id))
    cursor = page.next_cursor
  }
  expect(seen).toEqual(ids.toSorted().toReversed())
  await client.close()
})

describe('a long command', () => {
  let client: Client
  let session_id: string
  beforeAll(async () => {
    client = await connect(alice)
    session_id = (await use<{ id: string }>(client, 'session_create')).id
  })
  afterAll(async () => {
    await use(client, 'session_destroy', { session_id })
    await client.close()
  })

  const isRunning = async (word: string) => {
    const command = `grep -l "[${word[0]}]${word.slice(1)}" /proc/[0-9]*/cmdline 2>/dev/null`
    return (
      (await alice.call('execCommand', { params: { id: session_id }, body: { command } })).body.stdout !== ''
    )
  }
  /** A command that shows by its name that it runs. */
  const sleeper = (word: string) => ({ session_id, command: `exec sh -c 'sleep 600; : ${word}'` })

  test('is told of every second, to a client that wants to know', async () => {
    const seen: number[] = []
    const result = await call(
      client,
      'exec',
      { session_id, command: 'sleep 3.5; echo done' },
      { onprogress: ({ progress }: { progress: number }) => seen.push(progress) },
    )
    expect(result.structuredContent).toMatchObject({ stdout: 'done\n' })
    expect(seen.slice(0, 3)).toEqual([1, 2, 3])
  })

  test('is stopped by a cancellation that arrives at another API process', async () => {
    const other = await connect(alice, 'each')
    const leave = new AbortController()
    const cancelled = call(other, 'exec', sleeper('cancelled-elsewhere'), { signal: leave.signal })
    await world.eventually(() => isRunning('cancelled-elsewhere'), 10_000)
    leave.abort('enough')
    await expect(cancelled).rejects.toThrow('enough')
    await world.eventually(async () => !(await isRunning('cancelled-elsewhere')), 10_000)
    await other.close()
  })

  test('ends its stream without an answer when it is cancelled', async () => {
    const request = { name: 'exec', arguments: sleeper('no-answer') }
    const headers = { 'mcp-session-id': 'of-this-test' }
    const answer = post(headers, { jsonrpc: '2.0', id: 7, method: 'tools/call', params: request })
    await world.eventually(() => isRunning('no-answer'), 10_000)
    const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } }
    expect(await post(headers, cancel, alice.key, 1)).toMatchObject({ status: 202, text: '' })
    expect((await answer).text).not.toContain('"id":7')
    await world.eventually(async () => !(await isRunning('no-answer')), 10_000)
  })

  test('is left alone by cancellations of other clients and other accounts with the same request id', async () => {
    const request = { name: 'exec', arguments: { session_id, command: 'touch mine; sleep 3; echo finished' } }
    const answer = post(
      { 'mcp-session-id': 'mine' },
      { jsonrpc: '2.0', id: 'same', method: 'tools/call', params: request },
    )
    await world.eventually(
      async () =>
        (await alice.call('execCommand', { params: { id: session_id }, body: { command: 'cat mine' } })).body
          .exit_code === 0,
      10_000,
    )
    const bob = await world.account()
    const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'same' } }
    await post({ 'mcp-session-id': 'another' }, cancel)
    await post({ 'mcp-session-id': 'mine' }, cancel, bob.key)
    await post({}, cancel)
    expect((await answer).text).toContain('finished')
  })

  test('is stopped when its client hangs up', async () => {
    const leave = new AbortController()
    const left = fetch(`${world.url()}/v1/mcp`, {
      ...toolCall(alice, 'exec', sleeper('hung-up')),
      signal: leave.signal,
    }).then((response) => response.text())
    await world.eventually(() => isRunning('hung-up'), 10_000)
    leave.abort()
    await expect(left).rejects.toThrow()
    await world.eventually(async () => !(await isRunning('hung-up')), 10_000)
  })
})

describe('over HTTP', () => {
  test('a ping is answered in JSON, a notification with 202 and nothing', async () => {
    const answer = await post({}, ping)
    expect(answer.status).toBe(200)
    expect(answer.headers['content-type']).toContain('application/json')
    expect(JSON.parse(answer.text)).toEqual({ jsonrpc: '2.0', id: 1, result: {} })
    expect(await post({}, { jsonrpc: '2.0', method: 'notifications/initialized' })).toMatchObject({
      status: 202,
      text: '',
    })
  })

  test('no message holds a character that a reader takes for the end of a line', async () => {
    const { id } = (await alice.call('createSandbox')).body
    const ends = 'a\u0085b\u2028c\u2029d'
    const args = { session_id: id, command: ['printf', '%s', ends] }
    const { text } = await send(`${world.url()}/v1/mcp`, toolCall(alice, 'exec', args))
    expect(text).not.toMatch(/[\u0085\u2028\u2029]/)
    const [, data] = /^data: (.*)$/m.exec(text)!
    expect(JSON.parse(data!).result.structuredContent).toMatchObject({ status: 'exited', stdout: ends })
    await alice.call('destroySandbox', { params: { id } })
  })

  test('messages are counted, each of a batch, and a batch is short', async () => {
    const limit = 12
    const strict = await world.startApi({ RATE_MCP_PER_MINUTE: String(limit) })
    const bob = await world.account()
    const ask = (message: unknown) => post({}, message, bob.key, world.apis.indexOf(strict))
    const batch = (length: number) =>
      Array.from({ length }, (_, id) => ({ ...ping, id, method: 'tools/list' }))
    const long = await ask(batch(100))
    expect(long.status).toBe(400)
    expect(long.text).toContain('at most 10')
    const first = await ask(batch(10))
    expect(first.status).toBe(200)
    expect(JSON.parse(first.text)).toHaveLength(10)
    expect(first.headers['x-ratelimit-limit']).toBe(String(limit))
    const second = await ask(batch(10))
    expect(second.status).toBe(429)
    expect(Number(second.headers['retry-after'])).toBeGreaterThan(0)
  })

  test('a cancellation takes as little of Redis whatever its id, and not for long', async () => {
    const bob = await world.account()
    const before = new Set(await world.redis.keys('sandlot:mcp-cancelled:*'))
    const ids = ['x'.repeat(1_000_000), 'short', 7]
    for (const requestId of ids) {
      const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } }
      expect((await post({}, cancel, bob.key)).status).toBe(202)
    }
    const marks = (await world.redis.keys('sandlot:mcp-cancelled:*')).filter((mark) => !before.has(mark))
    expect(marks).toHaveLength(ids.length)
    for (const mark of marks) {
      expect(mark.length).toBeLessThan(100)
      const ttl = await world.redis.ttl(mark)
      expect(ttl > 0 && ttl <= 30).toBe(true)
    }
  })

  test.each(['GET', 'DELETE', 'PUT'])('%s is refused with 405 and what is allowed', async (method) => {
    const answer = await send(`${world.url()}/v1/mcp`, {
      method,
      headers: { authorization: `Bearer ${alice.key}` },
    })
    expect(answer.status).toBe(405)
    expect(answer.headers.allow).toBe('POST')
  })

  test('without a key it is 401 and says how to send one', async () => {
    const answer = await post({}, ping, '')
    expect(answer.status).toBe(401)
    expect(answer.headers['www-authenticate']).toBe('Bearer')
    expect(JSON.parse(answer.text).code).toBe('missing_credentials')
  })

  test.each([
    ['no message', {}, 400],
    ['a list of nothing', [], 400],
    ['a message of another kind', { jsonrpc: '2.0', nothing: 1 }, 400],
  ])('%s is refused', async (_, body, status) => {
    expect((await post({}, body)).status).toBe(status)
  })

  test('a client that takes no event stream, or speaks a protocol of the future, is told so', async () => {
    expect((await post({ accept: 'application/json' }, ping)).status).toBe(406)
    const answer = await post({ 'mcp-protocol-version': '2099-01-01' }, ping)
    expect(answer.status).toBe(400)
    expect(answer.text).toContain('2099-01-01')
  })

  test('each client gets a session id of its own', async () => {
    const params = {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 't', version: '1' },
    }
    const initialize = { jsonrpc: '2.0', id: 0, method: 'initialize', params }
    const ids = await Promise.all(
      [0, 1].map(async (api) => (await post({}, initialize, alice.key, api)).headers['mcp-session-id']),
    )
    expect(new Set(ids).size).toBe(2)
    expect(ids[0]).toMatch(/^[\x21-\x7e]+$/)
  })
})
