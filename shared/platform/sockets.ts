import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { TokenBuckets } from '../lib/token-buckets.ts'

/**
 * Maximum number of unanswered requests per connection. Without it, Node would start all of the pipelined
 * requests in a chunk at once.
 */
const maxUnanswered = 8

/** How long an ended connection is kept open so that the response can arrive. */
const lingerMs = 2_000

/**
 * Limits on reading the rest of a request body after the response. Many clients read the response only after
 * they have sent the entire body, and closing a connection with unread bytes can discard the response.
 *
 * If the body is longer than 256 KiB or of unknown length, the connection is not reused, and everything after
 * another 256 KiB is dropped unparsed. After 15 s or 64 MiB, the connection is closed.
 */
const unreadBody = { ms: 15_000, parsedBytes: 256 * 1024, bytes: 64 * 1024 * 1024 }

const unansweredOf = new WeakMap<Socket, number>()

/**
 * Limits a connection's unanswered requests and a request's body. Must be called before anything else handles
 * the request.
 * @returns false if the connection has been destroyed
 */
export function limitRequest(request: IncomingMessage, response: ServerResponse): boolean {
  const { socket } = request
  if (socket.destroyed) return false
  const unanswered = (unansweredOf.get(socket) ?? 0) + 1
  if (unanswered > maxUnanswered) {
    stopParsing(socket)
    socket.destroy()
    return false
  }
  unansweredOf.set(socket, unanswered)
  response.once('close', () => unansweredOf.set(socket, unansweredOf.get(socket)! - 1))
  if (hasBody(request)) {
    limitChunks(request)
    limitUnreadBody(request, response)
  }
  return true
}

/**
 * Calls back once a response is complete or its connection closes, even if it already has. A plain 'close'
 * listener that is added after an `await` might never be called.
 */
export function onceClosed(response: ServerResponse, callback: () => void): void {
  if (response.closed) callback()
  else response.once('close', callback)
}

const hasBody = ({ headers }: IncomingMessage): boolean =>
  'transfer-encoding' in headers || 'content-length' in headers

/**
 * Stops Node's HTTP parser, which would otherwise create more requests from data already read, even after the
 * socket is destroyed. When `onIncoming` returns 2, the parser stops as if for a protocol upgrade.
 */
function stopParsing(socket: Socket): void {
  const { parser } = socket as Socket & { parser?: { onIncoming: () => number } }
  if (parser) parser.onIncoming = () => 2
}

/**
 * Limits the number of chunks in a body: one for every 16 bytes and one for every 5 ms, plus a burst of up to
 * 1,024 chunks.
 * @returns a function to call with the size of each chunk, which returns true once there are too many
 */
export function makeChunkLimit(now?: () => number): (bytes: number) => boolean {
  const chunks = new TokenBuckets({ perSecond: 200, burst: 1_024 }, now)
  return (bytes) => chunks.spend('', 1 - bytes / 16) > 0
}

function limitChunks(request: IncomingMessage): void {
  const isExceededBy = makeChunkLimit()
  const push = request.push.bind(request)
  // Node's parser passes every chunk to `push`. A 'data' listener would start the stream before its reader is
  // attached.
  request.push = (chunk: Buffer | null, encoding) => {
    if (chunk !== null && isExceededBy(chunk.length)) {
      request.socket.destroy()
      return false
    }
    return push(chunk, encoding)
  }
}

const mayBeLong = ({ headers }: IncomingMessage): boolean =>
  'transfer-encoding' in headers || Number(headers['content-length'] ?? 0) > unreadBody.parsedBytes

function limitUnreadBody(request: IncomingMessage, response: ServerResponse): void {
  const writeHead = response.writeHead.bind(response) as (...args: unknown[]) => ServerResponse
  response.writeHead = (...args: unknown[]) => {
    if (!request.complete && mayBeLong(request)) response.shouldKeepAlive = false
    return writeHead(...args)
  }
  // Runs before Node's own listener, which closes the connection if no other request is expected.
  response.prependOnceListener('finish', () => {
    const { socket } = request
    if (request.complete || socket.destroyed) return
    const isLast = !response.shouldKeepAlive
    if (isLast) socket.destroySoon = () => void socket.end()
    let bytes = 0
    const deadline = setTimeout(() => socket.destroy(), unreadBody.ms).unref()
    const stop = () => {
      clearTimeout(deadline)
      socket.off('data', count).off('close', stop)
    }
    // Runs after Node's own listener, which has parsed the chunk.
    const count = (chunk: Buffer) => {
      if (request.complete) {
        stop()
        if (isLast) socket.destroy()
        return
      }
      bytes += chunk.length
      if (bytes > unreadBody.bytes) socket.destroy()
      else if (bytes > unreadBody.parsedBytes && socket.listenerCount('data') > 1) {
        socket.removeAllListeners('data').on('data', count)
      }
    }
    socket.on('data', count).on('close', stop)
  })
}

/** Closes a socket that Node's HTTP server no longer manages, after sending its pending bytes. */
export function closeGracefully(socket: Duplex): void {
  if (socket.destroyed) return
  socket.on('error', () => socket.destroy())
  const timer = setTimeout(() => socket.destroy(), lingerMs)
  socket.once('close', () => clearTimeout(timer))
  // Unread bytes would prevent the socket from closing, and the response might be lost.
  socket.resume()
  socket.end()
}
