/** Takes the API's requests for WebSockets: each answer is a refusal, or an open one. */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'
import { endSoon } from '../../shared/platform/sockets.ts'
import { attachPath, problemHeader } from '../../shared/rpc/calls.ts'
import { argsOf, type SocketHandlers } from './call.ts'
import { problemOf } from './problem.ts'

export const isAttachment = ({ url }: IncomingMessage): boolean => url === attachPath

const sockets = new WebSocketServer({ noServer: true, maxPayload: 1024 * 1024, perMessageDeflate: false })

/** @param worker undefined while it takes none */
export async function takeWebSocket<Worker>(
  handlers: SocketHandlers<Worker>,
  worker: Worker | undefined,
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): Promise<void> {
  const open = handlers[request.url ?? '']
  if (!open || !worker) {
    socket.write('HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\n\r\n')
    return endSoon(socket)
  }
  try {
    const opened = await open(worker, argsOf(request) as never)
    let isServed = false
    sockets.handleUpgrade(request, socket, head, (webSocket) => {
      isServed = true
      opened.serve(webSocket)
    })
    // It is called at once, or never.
    if (!isServed) opened.abandon?.()
  } catch (error) {
    const { status, body } = problemOf(error)
    const text = JSON.stringify(body)
    socket.write(
      `HTTP/1.1 ${status} Refused\r\ncontent-type: application/json\r\n${problemHeader}: 1\r\n` +
        `content-length: ${Buffer.byteLength(text)}\r\nconnection: close\r\n\r\n${text}`,
    )
    endSoon(socket)
  }
}
