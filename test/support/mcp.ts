/** Messages of the Model Context Protocol as plain HTTP requests, for what the SDK's client would not do. */

/** What `fetch` and `send` take beside the address. */
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
