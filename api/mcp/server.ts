/** One message of a client, answered by the official SDK with a server that lives as long as the answer. */
import { addAbortListener } from 'node:events'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import {
  CallToolRequestSchema,
  CancelledNotificationSchema,
  ListToolsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'
import type { Logger } from '../../shared/platform/log.ts'
import type { App } from '../app.ts'
import type { Caller } from '../auth/authenticate.ts'
import type { ServedRoute } from '../http/route.ts'
import { hasLeft } from '../http/shutdown.ts'
import { cancel, type McpClient, whenCancelled } from './cancellation.ts'
import type { Outbox } from './outbox.ts'
import { reportProgress } from './progress.ts'
import { toolsFor } from './schemas.ts'
import { runTool } from './tools.ts'

export interface McpMessage {
  account: Caller
  /** A JSON-RPC message, or several. */
  message: unknown
  headers: Record<string, string | undefined>
  requestId: string
  log: Logger
  /** Sends the answer. */
  outbox: Outbox
  /** Aborts when the client hangs up, or when the process stops and cannot wait any longer. */
  signal: AbortSignal
}

const instructions = `Sandlot gives you short-lived Linux sandboxes, called sessions. Call session_create once, \
pass its id as session_id to exec and the file tools, and session_destroy when you are done. Paths are relative \
to /workspace. A session ends by itself at expires_at, with all its files. An error is JSON with a code, what \
happened (detail) and what to do next; wait retry_after seconds where it is given.`

/** @returns JSON; an event stream for a tool call */
export async function answerMessage(
  app: App,
  routes: ServedRoute[],
  incoming: McpMessage,
): Promise<Response> {
  const { message, headers, signal } = incoming
  const server = makeServer(app, routes, incoming)
  const transport = new WebStandardStreamableHTTPServerTransport({
    enableJsonResponse: ![message].flat().some((one) => (one as { method?: string }).method === 'tools/call'),
  })
  // The SDK's class declares `onclose?: … | undefined` where its interface says `onclose?: …`.
  await server.connect(transport as never)
  // When the process stops, the tool tells its client.
  const end = () => hasLeft(signal) && void server.close()
  addAbortListener(signal, end)
  const given = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value]],
  )
  const request = new Request('http://localhost/v1/mcp', {
    method: 'POST',
    headers: [...given, ['content-type', 'application/json']] as [string, string][],
  })
  return transport.handleRequest(request, { parsedBody: message })
}

function makeServer(app: App, routes: ServedRoute[], incoming: McpMessage): Server {
  const server = new Server({ name: 'sandlot', version: '1' }, { capabilities: { tools: {} }, instructions })
  const client: McpClient = { accountId: incoming.account.id, session: incoming.headers['mcp-session-id'] }

  const listed = toolsFor(app.context.settings, incoming.account.overrides.sandboxSeconds)
  server.setRequestHandler(ListToolsRequestSchema, async () => ({ tools: listed as never }))

  server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
    const { signal, requestId } = extra
    const ended = new AbortController()
    // A request that was cancelled gets no answer: its stream just ends.
    void whenCancelled(app.context, client, requestId, ended.signal).then((cancelled) => {
      if (cancelled) void server.close()
    })
    using _progress = reportProgress(extra, incoming.outbox)
    try {
      const either = AbortSignal.any([incoming.signal, signal])
      return (await runTool(app, routes, params, { ...incoming, signal: either })) as never
    } finally {
      ended.abort()
    }
  })

  server.setNotificationHandler(CancelledNotificationSchema, async ({ params }) => {
    if (params.requestId !== undefined) await cancel(app.context, client, params.requestId)
  })
  return server
}
