import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'
import { limits } from '../../shared/contract/limits.ts'
import { TokenBuckets } from '../../shared/lib/token-buckets.ts'
import type { Context } from '../../shared/platform/context.ts'
import type { Reservation } from '../../shared/platform/memory-budget.ts'
import { RateLimitedWebSocket } from '../../shared/platform/rate-limited-websocket.ts'
import { closeGracefully } from '../../shared/platform/sockets.ts'
import { attachPath, type InSandbox, problemHeader } from '../../shared/rpc/calls.ts'
import type { Activity } from './activity.ts'
import { argsOf, type SocketHandlers } from './call.ts'
import { problemOf } from './problem.ts'

export const isAttachment = ({ url }: IncomingMessage): boolean => url === attachPath

const maxFragments = 8
const maxBufferedReads = 256
/** Maximum bytes per read of a TLS socket. A buffered message fragment can keep an entire read in memory. */
const readBytes = 16 * 1024
/** Memory that a read takes up in addition to its content. */
const readOverheadBytes = 512
/** Maximum amount of data that Node and ws can have buffered when a socket is paused. */
const pausedBytes = 64 * 1024
/** Memory reserved per open socket: the largest incomplete message plus the largest unread input. */
const socketBytes =
  limits.messageBytes + maxFragments * readBytes + maxBufferedReads * readOverheadBytes + pausedBytes

const sockets = new WebSocketServer({
  noServer: true,
  WebSocket: RateLimitedWebSocket,
  perMessageDeflate: false,
  autoPong: false,
  // In milliseconds. The type definitions lack this option.
  ...{ closeTimeout: 5_000 },
  // Emits one frame per event-loop iteration. By default, ws emits all frames of a read in one.
  allowSynchronousEvents: false,
  maxPayload: limits.messageBytes,
  maxFragments,
  maxBufferedChunks: maxBufferedReads,
})

const frameLimit = new TokenBuckets({ perSecond: 10_000, burst: 10_000 })

export async function takeWebSocket<Worker extends Pick<Context, 'memoryBudget'> & { activity: Activity }>(
  handlers: SocketHandlers<Worker>,
  worker: Worker | undefined,
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): Promise<void> {
  const open = handlers[request.url ?? '']
  if (!open || !worker) {
    socket.write('HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\n\r\n')
    return closeGracefully(socket)
  }
  let memory: Reservation | undefined
  try {
    const args = argsOf(request) as InSandbox
    memory = worker.memoryBudget.open(args.accountId, 'websockets')
    memory.add(socketBytes)
    const opened = await open(worker, args as never)
    let isServed = false
    sockets.handleUpgrade(request, socket, head, (webSocket) => {
      isServed = true
      // Without a listener, an invalid frame would crash the process. ws closes the connection.
      webSocket.on('error', () => {})
      webSocket.answerPings()
      webSocket.limitFrames(frameLimit, args.accountId)
      webSocket.on('close', () => memory!.free())
      webSocket.on('close', worker.activity.begin(args.sandboxId))
      opened.serve(webSocket)
    })
    // The callback runs synchronously, or never.
    if (isServed) return
    memory.free()
    opened.abandon?.()
  } catch (error) {
    memory?.free()
    const { status, body } = problemOf(error)
    const text = JSON.stringify(body)
    socket.write(
      `HTTP/1.1 ${status} Refused\r\ncontent-type: application/json\r\n${problemHeader}: 1\r\n` +
        `content-length: ${Buffer.byteLength(text)}\r\nconnection: close\r\n\r\n${text}`,
    )
    closeGracefully(socket)
  }
}
