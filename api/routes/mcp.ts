/** `POST /v1/mcp`. Nothing is remembered between requests, so any API process may take each. */
import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import { mcp as contract } from '../../shared/contract/mcp.ts'
import { inOneLine } from '../../shared/contract/server-sent-events.ts'
import { JsonReply, route, type ServedRoute } from '../http/route.ts'

/** @param routes those that the tools are made of */
export const callMcp = (routes: ServedRoute[]) =>
  route(contract.callMcp, async ({ body, headers, ...call }, app) => {
    const [, ...more] = [body].flat()
    // The first message is counted with the request itself.
    for (const _ of more) await app.buckets.take(contract.callMcp.bucket, call.account.id)
    // Loaded at the first request, so that the start of the process does not wait for the SDK.
    const { answerMessage } = await import('../mcp/server.ts')
    const response = await answerMessage(app, routes, { ...call, message: body, headers })
    const isFirst = [body].flat().some(({ method }) => method === 'initialize')
    return new JsonReply(bodyOf(response) as never, {
      status: response.status,
      headers: {
        ...Object.fromEntries(response.headers),
        // It names the client and nothing else: request ids are unique only within one client.
        ...(isFirst && response.ok ? { 'Mcp-Session-Id': randomUUID() } : {}),
      },
    })
  })

/** Koa makes an empty body a 204; a notification is answered with 202. */
const bodyOf = ({ body }: Response) =>
  body ? Readable.fromWeb(body.pipeThrough(linesAlone()) as ReadableStream) : ''

/** Puts the SDK's JSON on one line for every reader. The SDK writes each event, or the whole JSON answer, in one piece. */
function linesAlone(): TransformStream<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder()
  const encoder = new TextEncoder()
  return new TransformStream({
    transform: (piece, to) => to.enqueue(encoder.encode(inOneLine(decoder.decode(piece)))),
  })
}
