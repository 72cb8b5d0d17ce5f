import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { toolsFor } from '../../api/mcp/schemas.ts'
import { toolLimits, tools } from '../../shared/contract/mcp.ts'
import type { Settings } from '../../shared/platform/settings.ts'
import type { Account } from '../support/account.ts'
import { startWorld } from '../support/index.ts'
import { callTool, connectMcp, refusalOf, useTool } from '../support/mcp.ts'
import { insertSandbox } from '../support/rows.ts'
import { shareWorld } from '../support/shared.ts'

const world = shareWorld({ apis: 2 })
let alice: Account
beforeAll(async () => {
  alice = await world.account()
})

test('a client can use a session through alternating API processes', async () => {
  const client = await connectMcp(world, alice, 'each')
  const { id: session_id } = await useTool(client, 'session_create', { name: 'by an agent' })
  expect(await useTool(client, 'exec', { session_id, command: 'echo hello; exit 3' })).toMatchObject({
    status: 'exited',
    exit_code: 3,
    stdout: 'hello\n',
  })
  const file = { session_id, path: 'notes/a.txt' }
  await useTool(client, 'file_create', { ...file, content: 'one\ntwo\nthree\n' })
  expect(await useTool(client, 'file_edit', { ...file, old: 'two', new: 'zwei' })).toMatchObject({
    replacements: 1,
  })
  expect(await useTool(client, 'file_view', { ...file, start_line: 2, end_line: 2 })).toMatchObject({
    content: 'zwei\n',
  })
  const { entries } = await useTool<{ entries: { name: string }[] }>(client, 'file_list', { session_id })
  expect(entries.map(({ name }) => name)).toContain('notes')
  expect(await useTool(client, 'file_glob', { session_id, pattern: '**/*.txt' })).toMatchObject({
    paths: ['notes/a.txt'],
  })
  const { matches } = await useTool<{ matches: object[] }>(client, 'file_grep', {
    session_id,
    pattern: 'ZWEI',
    ignore_case: true,
  })
  expect(matches).toMatchObject([{ line: 2, text: 'zwei' }])
  expect(await useTool(client, 'session_get', { session_id })).toMatchObject({ state: 'active' })
  expect(await useTool(client, 'session_list', { state: 'active' })).toMatchObject({
    data: [{ id: session_id }],
  })
  expect(await useTool(client, 'whoami')).toMatchObject({ email: alice.email, concurrent: { active: 1 } })
  expect(await useTool(client, 'session_destroy', { session_id })).toMatchObject({ state: 'destroyed' })
  expect(await refusalOf(client, 'exec', { session_id, command: 'true' })).toMatchObject({
    code: 'sandbox_destroyed',
    next: expect.stringContaining('session_create'),
  })
  await client.close()
})

describe('tools/list', () => {
  test('lists every tool with its schemas and annotations, and no tool that manages credentials', async () => {
    const client = await connectMcp(world, alice)
    const list = await client.listTools()
    const { tools: listed } = list
    expect(listed.map(({ name }) => name)).toEqual(Object.keys(tools))
    for (const { name, title, description, inputSchema, annotations } of listed) {
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
      expect(JSON.stringify(inputSchema)).not.toMatch(/\$ref|\$defs|definitions/)
    }
    expect(JSON.stringify(Object.keys(tools))).not.toMatch(/key|secret|allowlist|login|signup/)
    const exec = listed.find(({ name }) => name === 'exec')!
    expect(exec.inputSchema.required).toEqual(['session_id', 'command'])
    expect(Object.keys(exec.inputSchema.properties!)).not.toContain('background')
    const grep = listed.find(({ name }) => name === 'file_grep')!
    expect(grep.inputSchema.properties!.ignore_case).toMatchObject({ type: 'boolean' })
    // 2,500 tokens of four characters.
    expect(JSON.stringify(list).length).toBeLessThan(10_000)
    await client.close()
  })

  test('tool schemas mention nothing that exists only in the HTTP API', () => {
    const inputs = toolsFor(settings).map(({ inputSchema }) => JSON.stringify(inputSchema))
    for (const words of inputs) expect(words).not.toMatch(/stream|background|interactive|sandbox|\b4\d\d\b/)
  })

  const sandbox = { image: 'a:1', images: ['a:1', 'b:2'], maxSeconds: 600, egress: 'internet' }
  const settings = { driver: 'kubernetes', sandbox } as Settings

  test.each([
    ['the internet', settings, 'The sandbox can reach the internet, but no private networks.'],
    [
      'nothing',
      { ...settings, sandbox: { ...settings.sandbox, egress: 'none' } },
      'The sandbox has no network access.',
    ],
    ['nothing, on the local driver', { ...settings, driver: 'local' }, 'The sandbox has no network access.'],
  ] as const)('the tool list describes the network access of a session: %s', (_, settings, words) => {
    const [create] = toolsFor(settings)
    expect(create!.description).toContain(words)
    const exec = toolsFor(settings).find(({ name }) => name === 'exec')!
    expect(exec.annotations.openWorldHint).toBe(words.includes('internet'))
  })

  test('the tool list states the longest TTL that the account can request', () => {
    const [create] = toolsFor(settings, 90)
    expect(create!.inputSchema.properties.ttl_seconds).toMatchObject({ maximum: 90, default: 90 })
  })
})

describe('tool errors', () => {
  test('a tool error names the invalid arguments', async () => {
    const client = await connectMcp(world, alice)
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

  test("another account's session is reported as not found", async () => {
    const client = await connectMcp(world, await world.account())
    const { body } = await alice.call('createSandbox')
    expect(await refusalOf(client, 'exec', { session_id: body.id, command: 'true' })).toMatchObject({
      code: 'not_found',
      status: 404,
      next: expect.stringContaining('session_list'),
      request_id: expect.stringMatching(/^req_/),
    })
    await alice.call('destroySandbox', { params: { id: body.id } })
    await expect(callTool(client, 'api_key_create')).rejects.toThrow('Unknown tool api_key_create')
    await client.close()
  })

  test("the account's allowlist applies to the exec tool, but not to the file tools", async () => {
    const bob = await world.account()
    const client = await connectMcp(world, bob)
    const { id: session_id } = await useTool<{ id: string }>(client, 'session_create')
    await bob.call('setAllowlist', { body: { commands: ['ls'] } })
    await useTool(client, 'exec', { session_id, command: ['ls'] })
    expect(await refusalOf(client, 'exec', { session_id, command: ['id'] })).toMatchObject({
      code: 'command_not_allowed',
      next: expect.stringContaining('Only the user'),
    })
    await useTool(client, 'file_create', { session_id, path: 'a', content: '' })
    await useTool(client, 'session_destroy', { session_id })
    await client.close()
  })

  test('tools apply the same limits as the HTTP routes', async () => {
    await using small = await startWorld({
      env: {
        QUOTA_CONCURRENT_SANDBOXES: '1',
        RATE_SANDBOX_OPS_PER_MINUTE: '3',
        SANDBOX_IMAGE: 'a:1',
        SANDBOX_IMAGES: 'b:2',
        SANDBOX_MAX_SECONDS: '600',
      },
    })
    const bob = await small.account()
    const client = await connectMcp(small, bob)
    const [create] = (await client.listTools()).tools
    expect(create!.inputSchema.properties).toMatchObject({
      image: { enum: ['a:1', 'b:2'], default: 'a:1' },
      ttl_seconds: { maximum: 600, default: 600 },
    })
    expect(await refusalOf(client, 'session_create', { ttl_seconds: 601 })).toMatchObject({
      errors: [{ path: 'ttl_seconds' }],
    })
    const { id } = await useTool<{ id: string }>(client, 'session_create')
    expect(await refusalOf(client, 'session_create')).toMatchObject({
      code: 'concurrent_sandbox_limit_reached',
      retry_after: expect.any(Number),
      next: expect.stringContaining('session_destroy'),
    })
    const command = ['true']
    await useTool(client, 'exec', { session_id: id, command })
    await bob.call('execCommand', { params: { id }, body: { command } })
    await useTool(client, 'exec', { session_id: id, command })
    const limited = await refusalOf(client, 'exec', { session_id: id, command })
    expect(limited).toMatchObject({ code: 'rate_limited', status: 429 })
    expect(limited.retry_after).toBeGreaterThanOrEqual(1)
    await expect(bob.call('execCommand', { params: { id }, body: { command } })).rejects.toMatchObject({
      code: 'rate_limited',
    })
    await useTool(client, 'session_destroy', { session_id: id })
    await client.close()
  })
})

describe('long tool output', () => {
  let client: Client
  let session_id: string
  beforeAll(async () => {
    client = await connectMcp(world, alice)
    session_id = (await useTool<{ id: string }>(client, 'session_create')).id
  })
  afterAll(async () => {
    await useTool(client, 'session_destroy', { session_id })
    await client.close()
  })

  test('a tool result keeps the beginning and end of long output', async () => {
    const command = 'echo first; head -c 200000 /dev/zero | tr "\\0" x; echo; echo last'
    const result = await callTool(client, 'exec', { session_id, command })
    const { stdout, truncated, stdout_bytes } = result.structuredContent as {
      stdout: string
      truncated: boolean
      stdout_bytes: number
    }
    expect(truncated).toBe(true)
    expect(stdout_bytes).toBe(200_012)
    expect(stdout.length).toBeLessThan(toolLimits.outputCharacters + 100)
    expect(stdout).toMatch(/^first\n[\s\S]*\n\[\.\.\. \d+ characters omitted \.\.\.\]\n[\s\S]*last\n$/)
    expect(result.content[1]!.text).toContain('stdout was truncated')
  })

  test('a tool result truncates a long file after a complete line', async () => {
    await useTool(client, 'exec', { session_id, command: 'seq 1 30000 > numbers' })
    const result = await callTool(client, 'file_view', { session_id, path: 'numbers' })
    const { content, truncated } = result.structuredContent as { content: string; truncated: boolean }
    expect(truncated).toBe(true)
    expect(content.length).toBeLessThanOrEqual(toolLimits.contentCharacters)
    const lines = content.trimEnd().split('\n')
    expect(lines.at(-1)).toBe(String(lines.length))
    expect(result.content[1]!.text).toContain(`after ${lines.length} lines`)
    expect(
      await useTool(client, 'file_view', {
        session_id,
        path: 'numbers',
        start_line: lines.length + 1,
        end_line: lines.length + 1,
      }),
    ).toMatchObject({ content: `${lines.length + 1}\n` })
  })

  test('a tool result truncates a long list between entries', async () => {
    const command =
      'mkdir many; cd many; for i in $(seq 1 2000); do : > a-file-with-quite-a-long-name-$i; done'
    await useTool(client, 'exec', { session_id, command })
    const result = await callTool(client, 'file_glob', { session_id, pattern: 'many/*' })
    const { paths, truncated } = result.structuredContent as { paths: string[]; truncated: boolean }
    expect(truncated).toBe(true)
    expect(paths.length).toBeLessThan(2000)
    expect(JSON.stringify(paths).length).toBeLessThanOrEqual(toolLimits.listCharacters + 2)
    expect(result.content[1]!.text).toContain(`${paths.length} of 2000`)
  })
})

test('a truncated session list includes a cursor for the rest', async () => {
  const bob = await world.account()
  const metadata = Object.fromEntries(Array.from({ length: 32 }, (_, at) => [`key${at}`, 'x'.repeat(512)]))
  const now = new Date()
  const ended = {
    created_at: now,
    ready_at: now,
    destroyed_at: now,
    destroy_reason: 'requested',
    reaped_at: now,
  }
  const ids: string[] = []
  for (let n = 0; n < 9; n++)
    ids.push(await insertSandbox(world, bob, { ...ended, metadata: JSON.stringify(metadata) }))
  const client = await connectMcp(world, bob)
  const seen: string[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const result = await callTool(client, 'session_list', {
      state: 'all',
      limit: 8,
      ...(cursor && { cursor }),
    })
    const page = result.structuredContent as { data: { id: string }[]; next_cursor: string | null }
    expect(JSON.stringify(page).length).toBeLessThan(toolLimits.listCharacters + 100)
    seen.push(...page.data.map(({ id }) => id))
    cursor = page.next_cursor
  }
  expect(seen).toEqual(ids.toSorted().toReversed())
  // By default, only active sandboxes are listed.
  expect(await useTool(client, 'session_list')).toEqual({ data: [], next_cursor: null })
  await client.close()
})
