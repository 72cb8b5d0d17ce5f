/** `POST /v1/mcp`. Nothing is remembered between requests, so any API process may take each. */
import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { mcp as contract } from '../../shared/contract/mcp.ts'
import { JsonReply, route, type ServedRoute } from '../http/route.ts'
import { mustBeBounded } from '../mcp/bounds.ts'
import { Outbox } from '../mcp/outbox.ts'

/** @param routes those that the tools are made of */
export const callMcp = (routes: ServedRoute[]) =>
  route(contract.callMcp, async ({ body, headers, ...call }, app) => {
    for (const message of [body].flat()) mustBeBounded(message)
    const [, ...more] = [body].flat()
    // The first message is counted with the request itself.
    for (const _ of more) await app.buckets.take(contract.callMcp.bucket, call.account.id)
    // Loaded at the first request, so that the start of the process does not wait for the SDK.
    const { answerMessage } = await import('../mcp/server.ts')
    const outbox = new Outbox()
    const response = await answerMessage(app, routes, { ...call, message: body, headers, outbox })
    const isFirst = [body].flat().some(({ method }) => method === 'initialize')
    return new JsonReply(bodyOf(response, outbox) as never, {
      status: response.status,
      headers: {
        ...Object.fromEntries(response.headers),
        // It names the client and nothing else: request ids are unique only within one client.
        ...(isFirst && response.ok ? { 'Mcp-Session-Id': randomUUID() } : {}),
      },
    })
  })

/** Koa makes an empty body a 204; a notification is answered with 202. */
const bodyOf = ({ body }: Response, outbox: Outbox) => (body ? Readable.from(outbox.send(body)) : '')
