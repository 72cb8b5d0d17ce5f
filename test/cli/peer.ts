/** An HTTP server that behaves as no Sandlot does, for what the real service cannot be made to do. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

/** A peer on a free port that notes what it was asked. */
export async function startPeer(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  tls?: { key: string; cert: string },
) {
  const asked: { line: string; headers: IncomingMessage['headers']; body: string }[] = []
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    text(request).then((body) => {
      asked.push({ line: `${request.method} ${request.url}`, headers: request.headers, body })
      answer(request, response)
    })
  }
  const server: Server = tls ? createTlsServer(tls, listener) : createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    asked,
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
