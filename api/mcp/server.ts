import { randomUUID } from 'node:crypto'
import { addAbortListener } from 'node:events'
import {
  createMcpHandler,
  isLegacyRequest,
  Server,
  type ServerContext,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server'
import { Id } from '../../shared/contract/endpoint.ts'
import { resumption, type ToolName, tools } from '../../shared/contract/mcp.ts'
import type { App } from '../app.ts'
import type { Caller } from '../auth/authenticate.ts'
import { stopUnderKey } from '../exec/exec-by-idempotency-key.ts'
import { accepts } from '../http/accept.ts'
import type { RequestLog } from '../http/request-log.ts'
import type { ServedRoute } from '../http/route.ts'
import { hasDisconnected } from '../http/shutdown.ts'
import { cancel, type McpClient, whenCancelled } from './cancellation.ts'
import type { Outbox } from './outbox.ts'
import { sessionInput, toolsFor } from './schemas.ts'
import { numberEvents, resumable, type Ticket } from './ticket.ts'
import { type CommandKey, rejoinTool, runTool } from './tools.ts'

export interface McpMessage {
  account: Caller
  message: unknown
  headers: Record<string, string | undefined>
  requestId: string
  log: RequestLog
  outbox: Outbox
  signal: AbortSignal
  /** Set if the client has reconnected to get the result of an earlier call. */
  resumed?: { ticket: Ticket; next: number }
}

const stopMs = 20_000

const instructions = `Sandlot gives you short-lived Linux sandboxes, called sessions. Call session_create once, \
pass its id as session_id to exec and the file tools, and call session_destroy when you are done. Paths are relative \
to /workspace. A session ends automatically at expires_at, and its files are deleted. An error is JSON with a code, \
an explanation (detail) and the next step (next). If it contains retry_after, wait that many seconds.`

/**
 * Responds to an MCP message in the client's protocol version. Since version 2026-07-28, each message names
 * its version. Clients of earlier versions send `initialize` instead.
 */
export async function answerMessage(
  app: App,
  routes: ServedRoute[],
  incoming: McpMessage,
): Promise<Response> {
  const request = requestFor(incoming)
  return (await isLegacyRequest(request, incoming.message))
    ? answerEarlier(app, routes, incoming, request)
    : answerStateless(app, routes, incoming, request)
}

async function answerEarlier(app: App, routes: ServedRoute[], incoming: McpMessage, request: Request) {
  const { message, headers, signal, resumed } = incoming
  const ticket = resumed?.ticket ?? ticketFor(message, headers)
  const client = { accountId: incoming.account.id, session: headers['mcp-session-id'] }
  const server = makeServer(app, routes, incoming, { client, ticket })
  // A cancellation is a separate request, which may reach a different process than the call.
  server.setNotificationHandler('notifications/cancelled', async ({ params }) => {
    if (params.requestId !== undefined) await cancel(app.context, client, params.requestId)
  })
  const transport = new WebStandardStreamableHTTPServerTransport({
    enableJsonResponse: !wantsEvents(incoming) && accepts(headers.accept, json),
    ...(ticket && { eventStore: numberEvents(ticket, resumed?.next), retryInterval: resumption.retryMs }),
  })
  await server.connect(transport)
  // When this process stops, a client that can resume reconnects to another process. Other clients get an
  // error.
  const end = () => (ticket?.command || hasDisconnected(signal)) && void server.close()
  addAbortListener(signal, end)
  return transport.handleRequest(request, { parsedBody: message })
}

/**
 * Responds to a message of protocol version 2026-07-28, in which a disconnect cancels the call and streams
 * cannot be resumed.
 */
function answerStateless(app: App, routes: ServedRoute[], incoming: McpMessage, request: Request) {
  const { message, headers } = incoming
  const mode = accepts(headers.accept, events) ? 'auto' : 'json'
  const handler = createMcpHandler(() => makeServer(app, routes, incoming), {
    legacy: 'reject',
    responseMode: wantsEvents(incoming) ? 'sse' : mode,
  })
  return handler.fetch(request, { parsedBody: message })
}

const wantsEvents = ({ message, headers }: McpMessage): boolean =>
  hasCall(message) && accepts(headers.accept, events)

const json = 'application/json'
const events = 'text/event-stream'

/**
 * Returns an `Accept` header that satisfies the SDK, which requires clients to accept both media types. This
 * service requires only one of them.
 */
const acceptFor = (accept: string | undefined): string =>
  accepts(accept, json) || accepts(accept, events) ? `${json}, ${events}` : '*/*;q=0'

const hasCall = (message: unknown) =>
  [message].flat().some((one) => (one as { method?: string }).method === 'tools/call')

function requestFor({ headers, signal }: McpMessage): Request {
  const disconnected = new AbortController()
  addAbortListener(signal, () => hasDisconnected(signal) && disconnected.abort())
  const given = Object.entries({ ...headers, accept: acceptFor(headers.accept) }).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as [string, string]],
  )
  return new Request('http://localhost/v1/mcp', {
    method: 'POST',
    headers: [...given, ['content-type', 'application/json']],
    signal: disconnected.signal,
  })
}

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

/**
 * @param earlier set if the client uses a protocol version before 2026-07-28. In those versions, a separate
 *   message cancels a call.
 */
function makeServer(
  app: App,
  routes: ServedRoute[],
  incoming: McpMessage,
  earlier?: { client: McpClient; ticket: Ticket | undefined },
): Server {
  const server = new Server({ name: 'sandlot', version: '1' }, { capabilities: { tools: {} }, instructions })
  const { account, resumed } = incoming
  const command = earlier?.ticket?.command

  const listed = toolsFor(app.context.settings, account.overrides.sandboxSeconds)
  server.setRequestHandler('tools/list', async () => ({ tools: listed as never }))

  server.setRequestHandler('tools/call', async ({ params }, { mcpReq }) => {
    const ended = new AbortController()
    if (earlier) {
      // A cancelled request gets no response, and its stream is closed.
      void whenCancelled(app.context, earlier.client, mcpReq.id, ended.signal).then((cancelled) => {
        if (!cancelled) return
        void server.close()
        if (command) void stop(app, incoming, command)
      })
    }
    const since = resumed ? Math.max(0, Math.round((Date.now() - resumed.ticket.at) / 1000)) : 0
    using _progress = reportProgress(mcpReq, incoming.outbox, since)
    try {
      const call = { ...incoming, signal: AbortSignal.any([incoming.signal, mcpReq.signal]) }
      const result = resumed
        ? rejoinTool(app, resumed.ticket, call)
        : runTool(app, routes, params, call, command)
      return (await result) as never
    } finally {
      // A client may cancel a call after it has disconnected.
      if (command && hasDisconnected(incoming.signal))
        setTimeout(() => ended.abort(), resumption.graceMs).unref()
      else ended.abort()
    }
  })
  return server
}

/**
 * Reports progress every second if the client requested it, so that the client does not time out.
 * @param from number of seconds that the call has already been running
 */
function reportProgress(
  { _meta, notify }: ServerContext['mcpReq'],
  outbox: Outbox,
  from: number,
): Disposable {
  const progressToken = _meta?.progressToken
  if (progressToken === undefined) return { [Symbol.dispose]() {} }
  let progress = from
  const timer = setInterval(() => {
    progress++
    // While the client is not reading, the message is skipped, because the next one supersedes it.
    if (!outbox.isTaken) return
    const params = { progressToken, progress, message: `Running for ${progress} s` }
    void notify({ method: 'notifications/progress', params }).catch(() => {})
  }, 1_000)
  return { [Symbol.dispose]: () => clearInterval(timer) }
}

async function stop(app: App, { account, requestId, log }: McpMessage, command: CommandKey): Promise<void> {
  const asked = { ...command, accountId: account.id, requestId, signal: AbortSignal.timeout(stopMs) }
  await stopUnderKey(app, asked).catch((error) =>
    log.info({ err: error }, 'could not kill a cancelled command, so it keeps running for its grace period'),
  )
}
