/** One message of a client, answered by the official SDK with a server that lives as long as the answer. */
import { randomUUID } from 'node:crypto'
import { addAbortListener } from 'node:events'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import {
  CallToolRequestSchema,
  CancelledNotificationSchema,
  ListToolsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { Id } from '../../shared/contract/endpoint.ts'
import { resumption, type ToolName, tools } from '../../shared/contract/mcp.ts'
import type { Logger } from '../../shared/platform/log.ts'
import type { App } from '../app.ts'
import type { Caller } from '../auth/authenticate.ts'
import { stopUnderKey } from '../exec/under-key.ts'
import type { ServedRoute } from '../http/route.ts'
import { hasLeft } from '../http/shutdown.ts'
import { cancel, type McpClient, whenCancelled } from './cancellation.ts'
import type { Outbox } from './outbox.ts'
import { reportProgress } from './progress.ts'
import { sessionInput, toolsFor } from './schemas.ts'
import { numberEvents, resumable, type Ticket } from './ticket.ts'
import { rejoinTool, runTool } from './tools.ts'

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
  /** Of a call that was made before: the client is back for its answer. */
  resumed?: { ticket: Ticket; next: number }
}

/** Milliseconds to end a command whose call was cancelled. */
const stopMs = 20_000

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
  const { message, headers, signal, resumed } = incoming
  const ticket = resumed?.ticket ?? ticketFor(message, headers)
  const server = makeServer(app, routes, incoming, ticket)
  const transport = new WebStandardStreamableHTTPServerTransport({
    enableJsonResponse: ![message].flat().some((one) => (one as { method?: string }).method === 'tools/call'),
    ...(ticket && { eventStore: numberEvents(ticket, resumed?.next), retryInterval: resumption.retryMs }),
  })
  // The SDK's class declares `onclose?: … | undefined` where its interface says `onclose?: …`.
  await server.connect(transport as never)
  // When the process stops, a client that can take up its stream goes to another one. Others are told by the tool.
  const end = () => (ticket || hasLeft(signal)) && void server.close()
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

/** @returns undefined when the client could not use it */
function ticketFor(message: unknown, headers: McpMessage['headers']): Ticket | undefined {
  const { method, id, params } = message as {
    method?: unknown
    id?: string | number
    params?: {
      name?: string
      arguments?: Record<string, unknown>
      _meta?: { progressToken?: string | number }
    }
  }
  if (method !== 'tools/call' || id === undefined || headers['mcp-protocol-version'] !== resumable)
    return undefined
  const name = String(params?.name)
  if (!Object.hasOwn(tools, name)) return undefined
  const { data: sandboxId } = Id.safeParse(params?.arguments?.[sessionInput])
  return {
    requestId: id,
    progressToken: params?._meta?.progressToken,
    tool: name as ToolName,
    ...(name === 'exec' && sandboxId ? { command: { sandboxId, key: `mcp-${randomUUID()}` } } : {}),
    at: Date.now(),
  }
}

function makeServer(
  app: App,
  routes: ServedRoute[],
  incoming: McpMessage,
  ticket: Ticket | undefined,
): Server {
  const server = new Server({ name: 'sandlot', version: '1' }, { capabilities: { tools: {} }, instructions })
  const client: McpClient = { accountId: incoming.account.id, session: incoming.headers['mcp-session-id'] }
  const { resumed, log, requestId: ourId } = incoming

  const listed = toolsFor(app.context.settings, incoming.account.overrides.sandboxSeconds)
  server.setRequestHandler(ListToolsRequestSchema, async () => ({ tools: listed as never }))

  /** A command that outlives its client for a while is ended at once. */
  const stop = async (command: Ticket['command']) => {
    if (!command) return
    const asked = { ...command, accountId: client.accountId, requestId: ourId }
    await stopUnderKey(app, { ...asked, signal: AbortSignal.timeout(stopMs) }).catch((error) =>
      log.info({ err: error }, 'a cancelled command was left to its grace'),
    )
  }

  server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
    const { signal, requestId } = extra
    const ended = new AbortController()
    // A request that was cancelled gets no answer: its stream just ends.
    void whenCancelled(app.context, client, requestId, ended.signal).then((cancelled) => {
      if (!cancelled) return
      void server.close()
      void stop(ticket?.command)
    })
    const since = resumed ? Math.max(0, Math.round((Date.now() - resumed.ticket.at) / 1000)) : 0
    using _progress = reportProgress(extra, incoming.outbox, since)
    try {
      const call = { ...incoming, signal: AbortSignal.any([incoming.signal, signal]) }
      const result = resumed
        ? rejoinTool(app, resumed.ticket, call)
        : runTool(app, routes, params, call, ticket?.command)
      return (await result) as never
    } finally {
      // A client that has hung up may cancel only then.
      if (ticket?.command && hasLeft(incoming.signal))
        setTimeout(() => ended.abort(), resumption.graceMs).unref()
      else ended.abort()
    }
  })

  server.setNotificationHandler(CancelledNotificationSchema, async ({ params }) => {
    if (params.requestId !== undefined) await cancel(app.context, client, params.requestId)
  })
  return server
}
