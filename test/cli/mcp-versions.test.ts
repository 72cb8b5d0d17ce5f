import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { describe, expect, test } from 'vitest'
import { tools } from '../../shared/contract/mcp.ts'
import { type McpVersion, mcpVersions, pinnedClient } from '../support/mcp.ts'
import { shareWorld } from '../support/shared.ts'
import { clientPath, type Home } from './client.ts'
import { openLine } from './line.ts'
import { makeUsers } from './users.ts'

const world = shareWorld({ apis: 2 })
const { newUser } = makeUsers(world)

async function connect(home: Home, version: McpVersion, env: Record<string, string> = {}) {
  const client = pinnedClient(version)
  const args = [clientPath, 'mcp', 'serve']
  const transport = { command: process.execPath, args, env: home.environment(env) }
  await client.connect(new StdioClientTransport(transport))
  const use = async (name: string, args: object, options = {}) => {
    const result = await client.callTool({ name, arguments: { ...args } }, options)
    expect(result.isError, JSON.stringify(result.content)).toBeFalsy()
    return result.structuredContent as Record<string, unknown>
  }
  return { client, use }
}

// Concurrent, because the tests mostly wait.
describe.concurrent.each(mcpVersions)('a client with protocol version %s', (version) => {
  test('an MCP client receives progress, and stops a command by cancelling its tool call', async () => {
    using user = await newUser()
    const { client, use } = await connect(user.home, version)
    expect(client.getNegotiatedProtocolVersion()).toBe(version)
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(Object.keys(tools))
    const { id: session_id } = await use('session_create', {})
    const isRunning = async () => {
      const command = 'grep -l "[s]leep 600; : long" /proc/[0-9]*/cmdline 2>/dev/null'
      return (await use('exec', { session_id, command })).stdout !== ''
    }
    const leave = new AbortController()
    const seen: number[] = []
    const cancelled = use(
      'exec',
      { session_id, command: "exec sh -c 'sleep 600; : long'" },
      { signal: leave.signal, onprogress: ({ progress }: { progress: number }) => seen.push(progress) },
    )
    await world.eventually(async () => seen.length >= 2 && (await isRunning()), 10_000)
    expect(seen.slice(0, 2)).toEqual([1, 2])
    leave.abort('enough')
    await expect(cancelled).rejects.toThrow()
    await world.eventually(async () => !(await isRunning()), 10_000)
    await expect(client.callTool({ name: 'no_tool' })).rejects.toThrow('Unknown tool no_tool')
    await use('session_destroy', { session_id })
    await client.close()
  })
})

test("an MCP client can resume its command's stream after the connection breaks", async () => {
  using user = await newUser()
  await using line = await openLine(world.url())
  const { client, use } = await connect(user.home, '2025-11-25', user.home.through(line.url))
  const { id: session_id } = await use('session_create', {})
  const command = 'echo ran >> ran; until [ -e go ]; do sleep 0.05; done; cat ran'
  const answer = use('exec', { session_id, command })
  const hasRun = async () => (await use('exec', { session_id, command: 'cat ran 2>/dev/null' })).stdout !== ''
  await world.eventually(hasRun, 10_000)
  line.cut()
  await use('exec', { session_id, command: 'touch go' })
  expect(await answer).toMatchObject({ status: 'exited', stdout: 'ran\n' })
  await use('session_destroy', { session_id })
  await client.close()
})
