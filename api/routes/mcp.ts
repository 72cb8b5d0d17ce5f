/** The routes of the MCP server. They are stateless, so any API process can serve each request. */
import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { mcp as contract } from '../../shared/contract/mcp.ts'
import { Problem } from '../../shared/platform/problem.ts'
import type { App } from '../app.ts'
import { JsonReply, route, type ServedRoute } from '../http/route.ts'
import { assertShortNames, withoutNulls } from '../mcp/bounds.ts'
import { Outbox } from '../mcp/outbox.ts'
import type { McpMessage } from '../mcp/server.ts'
import { readEventId, resumable } from '../mcp/ticket.ts'

export const callMcp = (routes: ServedRoute[]) =>
  route(contract.callMcp, async ({ body, headers, ...call }, app) => {
    for (const message of [body].flat()) assertShortNames(message)
    const messages = Array.isArray(body) ? body.map(withoutNulls) : withoutNulls(body)
    const [, ...more] = [body].flat()
    // The request itself has already taken a token for the first message.
    for (const _ of more) await app.buckets.take(contract.callMcp.bucket, call.account.id)
    const isFirst = [body].flat().some(({ method }) => method === 'initialize')
    // The session id only identifies the client, because request ids are unique only per client.
    return answer(app, routes, { ...call, message: messages, headers }, (ok) =>
      isFirst && ok ? { 'Mcp-Session-Id': randomUUID() } : {},
    )
  })

export const resumeMcp = (routes: ServedRoute[]) =>
  route(contract.resumeMcp, async ({ headers, request, ...call }, app) => {
    const { 'last-event-id': eventId, ...ofSession } = headers
    if (eventId === undefined || request.method !== 'GET') {
      throw new Problem(
        'method_not_allowed',
        'GET can only resume the stream of a tool call. Send the Last-Event-ID header.',
        { members: { allow: ['POST', 'OPTIONS'] } },
      )
    }
    const resumed = readEventId(eventId)
    const { requestId: id, progressToken, tool: name } = resumed.ticket
    const meta = progressToken === undefined ? {} : { _meta: { progressToken } }
    // Reconstructs the message of the earlier call, without its arguments.
    const message = { jsonrpc: '2.0', id, method: 'tools/call', params: { name, ...meta } }
    assertShortNames(message)
    const accept = 'application/json, text/event-stream'
    const asSent = { accept, 'mcp-protocol-version': resumable, ...ofSession }
    return answer(app, routes, { ...call, message, headers: asSent, resumed })
  })

async function answer(
  app: App,
  routes: ServedRoute[],
  incoming: Omit<McpMessage, 'outbox'>,
  more: (ok: boolean) => Record<string, string> = () => ({}),
): Promise<JsonReply<never>> {
  // The SDK is loaded on the first request, so that it does not delay process startup.
  const { answerMessage } = await import('../mcp/server.ts')
  const outbox = new Outbox()
  const held = app.context.memoryBudget.openStream(incoming.account.id, 'streams')
  try {
    const response = await answerMessage(app, routes, { ...incoming, outbox })
    const body = bodyOf(response, outbox)
    if (body instanceof Readable) body.once('close', () => held.free())
    else held.free()
    return new JsonReply(body as never, {
      status: response.status,
      headers: { ...Object.fromEntries(response.headers), ...more(response.ok) },
    })
  } catch (error) {
    held.free()
    throw error
  }
}

/** Returns a body even for a notification. Without a body, Koa would replace the status 202 with 204. */
function bodyOf({ body, headers }: Response, outbox: Outbox) {
  if (!body) return ''
  const isStream = headers.get('content-type')?.startsWith('text/event-stream')
  // The comment `:` makes Node send the headers immediately. The first event may take a long time.
  return Readable.from(outbox.send(body, isStream ? ':\n\n' : ''))
}
