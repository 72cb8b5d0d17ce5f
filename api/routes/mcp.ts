/** `POST /v1/mcp`. Nothing is remembered from one request to the next: any API process may take each. */
import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import { inOneLine } from '../../shared/contract/event-lines.ts'
import * as contract from '../../shared/contract/mcp.ts'
import { JsonReply, route, type ServedRoute } from '../http/route.ts'

/** @param routes those that the tools are made of */
export const callMcp = (routes: ServedRoute[]) =>
  route(contract.callMcp, async ({ body, headers, ...call }, app) => {
    const [, ...more] = [body].flat()
    // The first is the request's own.
    for (const _ of more) await app.buckets.take(contract.callMcp.bucket, call.account.id)
    // Loaded by the first who asks: the start of a process need not wait for the SDK.
    const { answerMessage } = await import('../mcp/server.ts')
    const response = await answerMessage(app, routes, { ...call, message: body, headers })
    const isFirst = [body].flat().some(({ method }) => method === 'initialize')
    return new JsonReply(bodyOf(response) as never, {
      status: response.status,
      headers: {
        ...Object.fromEntries(response.headers),
        // Names the client and nothing else: a request id is unique only among those of one client.
        ...(isFirst && response.ok ? { 'Mcp-Session-Id': randomUUID() } : {}),
      },
    })
  })

/** Koa makes a 204 of no body; what takes a notification is a 202. */
const bodyOf = ({ body }: Response) =>
  body ? Readable.fromWeb(body.pipeThrough(linesAlone()) as ReadableStream) : ''

/** The SDK writes an event, or a JSON answer, in one piece, with whatever JSON leaves as it is. */
function linesAlone(): TransformStream<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder()
  const encoder = new TextEncoder()
  return new TransformStream({
    transform: (piece, to) => to.enqueue(encoder.encode(inOneLine(decoder.decode(piece)))),
  })
}
