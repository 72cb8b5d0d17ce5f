/** Every supported protocol version, with the SDK client pinned to that version. */
import { describe, expect, test } from 'vitest'
import { tools } from '../../shared/contract/mcp.ts'
import { send } from '../support/http.ts'
import { connectPinned, mcpRequest, mcpVersions } from '../support/mcp.ts'
import { shareSandbox } from '../support/shared.ts'

const { world, alice, params, countOf } = shareSandbox({ apis: 2 })

const isRunning = async (word: string) => (await countOf(`[:] ${word}`)) > 0

// Concurrent, because the tests mostly wait.
describe.concurrent.each(mcpVersions)('MCP protocol version %s', (version) => {
  test('a client can list tools and run a command with progress', async () => {
    const client = await connectPinned(world.url(), alice, version)
    expect(client.getNegotiatedProtocolVersion()).toBe(version)
    expect(client.getInstructions()).toContain('session_create')
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(Object.keys(tools))
    const seen: number[] = []
    const args = { session_id: params.id, command: 'sleep 2.5; echo done' }
    const ran = await client.callTool(
      { name: 'exec', arguments: args },
      { onprogress: ({ progress }) => seen.push(progress) },
    )
    expect(ran.structuredContent).toMatchObject({ status: 'exited', stdout: 'done\n' })
    expect(seen.slice(0, 2)).toEqual([1, 2])
    const refused = await client.callTool({ name: 'file_view', arguments: { ...args, path: 'none' } })
    expect(refused).toMatchObject({ isError: true })
    await expect(client.callTool({ name: 'no_tool' })).rejects.toThrow('Unknown tool no_tool')
    await client.close()
  })

  test('a client can stop a command by cancelling its tool call', async () => {
    const client = await connectPinned(world.url(), alice, version)
    const leave = new AbortController()
    const word = `cancelled-${version}`
    const answer = client.callTool(
      { name: 'exec', arguments: { session_id: params.id, command: `exec sh -c 'sleep 600; : ${word}'` } },
      { signal: leave.signal },
    )
    await world.eventually(() => isRunning(word), 10_000)
    leave.abort('enough')
    await expect(answer).rejects.toThrow()
    await world.eventually(async () => !(await isRunning(word)), 10_000)
    // The processes end before the row is updated.
    const ended = await world.eventually(async () => {
      const { data } = (await alice.call('listExecs', { params, query: { limit: 100 } })).body
      const found = data.find(({ command }) => command.includes(`sleep 600; : ${word}`))
      return found?.status !== 'running' && found
    }, 10_000)
    // In the version with resumption, a signal ends the command before the grace period is over.
    expect(ended).toMatchObject({ status: version === '2025-11-25' ? 'signaled' : 'killed' })
    await client.close()
  })
})

const meta = (version: string) => ({
  'io.modelcontextprotocol/protocolVersion': version,
  'io.modelcontextprotocol/clientInfo': { name: 't', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
})
const stateless = (method: string, more: object, headers: Record<string, string>, version = '2026-07-28') =>
  send(
    `${world.url()}/v1/mcp`,
    mcpRequest(
      alice,
      { jsonrpc: '2.0', id: 1, method, params: { ...more, _meta: meta(version) } },
      { 'mcp-protocol-version': version, 'mcp-method': method, ...headers },
    ),
  )

describe('MCP protocol versions since 2026-07-28', () => {
  test("a client gets the server's capabilities in one request, without a handshake", async () => {
    const { status, headers, text } = await stateless('server/discover', {}, {})
    expect(status).toBe(200)
    expect(headers['content-type']).toContain('application/json')
    expect(headers).not.toHaveProperty('mcp-session-id')
    expect(JSON.parse(text).result).toMatchObject({
      supportedVersions: ['2026-07-28'],
      capabilities: { tools: {} },
      instructions: expect.stringContaining('session_create'),
    })
  })

  test('rejects headers that do not match the message, unknown methods and unknown protocol versions', async () => {
    const call = { name: 'whoami', arguments: {} }
    const codeOf = async (answer: ReturnType<typeof send>) => {
      const { status, text } = await answer
      return [status, JSON.parse(text).error.code]
    }
    expect(await codeOf(stateless('tools/call', call, { 'mcp-name': 'exec' }))).toEqual([400, -32020])
    expect(await codeOf(stateless('tools/call', call, {}))).toEqual([400, -32020])
    expect(await codeOf(stateless('no/method', {}, {}))).toEqual([404, -32601])
    expect(await codeOf(stateless('tools/list', {}, {}, '2099-01-01'))).toEqual([400, -32022])
  })

  test("a tool call's stream starts immediately and has no event ids", async () => {
    const { text } = await stateless(
      'tools/call',
      { name: 'whoami', arguments: {} },
      { 'mcp-name': 'whoami' },
    )
    expect(text).toMatch(/^:\n\n/)
    expect(text).not.toMatch(/^id:/m)
    expect(text).toContain(alice.email)
  })
})
