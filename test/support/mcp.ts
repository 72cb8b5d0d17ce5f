import * as today from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { expect } from 'vitest'
import type { Account } from './account.ts'
import type { World } from './world.ts'

export const mcpRequest = (
  { key }: { key: string },
  message: unknown,
  headers: Record<string, string> = {},
) => ({
  method: 'POST',
  headers: {
    ...(key ? { authorization: `Bearer ${key}` } : {}),
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    ...headers,
  },
  body: JSON.stringify(message),
})

export const toolCall = (account: { key: string }, name: string, args: object) =>
  mcpRequest(account, { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } })

/** @param api an API process, or `each` to use the next one for every request */
export async function connectMcp(of: World, account: Account, api: number | 'each' = 0): Promise<Client> {
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

/** Supported versions. Messages of the last version contain their version. */
export const mcpVersions = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'] as const
export type McpVersion = (typeof mcpVersions)[number]

/** A current client that supports only this version. */
export function pinnedClient(version: McpVersion): today.Client {
  const isStateless = version === '2026-07-28'
  return new today.Client(
    { name: 'test', version: '1' },
    isStateless
      ? { versionNegotiation: { mode: { pin: version } } }
      : { supportedProtocolVersions: [version] },
  )
}

export async function connectPinned(
  url: string,
  account: Account,
  version: McpVersion,
): Promise<today.Client> {
  const client = pinnedClient(version)
  const requestInit = { headers: { authorization: `Bearer ${account.key}` } }
  await client.connect(new today.StreamableHTTPClientTransport(new URL(`${url}/v1/mcp`), { requestInit }))
  return client
}

interface Result {
  isError?: boolean
  structuredContent?: Record<string, unknown>
  content: { type: string; text: string }[]
}

export const callTool = async (client: Client, name: string, args: object = {}, options = {}) =>
  (await client.callTool({ name, arguments: { ...args } }, undefined, options)) as Result

/** @returns the tool's result @throws if the tool returns an error */
export async function useTool<T = Record<string, unknown>>(
  client: Client,
  name: string,
  args: object = {},
): Promise<T> {
  const result = await callTool(client, name, args)
  expect(result.isError, result.content[0]?.text).toBeFalsy()
  expect(JSON.parse(result.content[0]!.text)).toEqual(result.structuredContent)
  return result.structuredContent as T
}

export async function refusalOf(
  client: Client,
  name: string,
  args: object = {},
): Promise<Record<string, unknown>> {
  const result = await callTool(client, name, args)
  expect(result.isError).toBe(true)
  return JSON.parse(result.content[0]!.text)
}
