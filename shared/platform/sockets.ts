/** Limits on HTTP connections, so that no input costs the server more than it costs the client. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { TokenBuckets } from '../lib/token-buckets.ts'

/** Node parses all pipelined requests of one read in one event-loop iteration. Clients pipeline only a few. */
const maxUnanswered = 8

/** Milliseconds until an ended connection is destroyed: the answer needs time to arrive. */
const lingerMs = 2_000

/**
 * How much of a body is still read after its answer. Many clients read the answer only after they have sent the whole
 * body, and closing a connection with unread bytes resets it, which can discard the answer. If the body may be longer
 * than 256 KiB, the connection accepts no further request, and the rest of the body is dropped without being parsed.
 */
const unreadBody = { ms: 15_000, parsedBytes: 256 * 1024, bytes: 64 * 1024 * 1024 }

const unansweredOf = new WeakMap<Socket, number>()

/**
 * Applies the limits of a connection to one of its requests. Call it before anything else handles the request.
 * @returns false if the connection is destroyed, because it has more than 8 unanswered requests
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
 * Calls back when a response is complete or its connection is closed, immediately if that has already happened. A plain
 * 'close' listener that is added after an `await` may be too late and never be called.
 */
export function onceClosed(response: ServerResponse, callback: () => void): void {
  if (response.closed) callback()
  else response.once('close', callback)
}

const hasBody = ({ headers }: IncomingMessage): boolean =>
  'transfer-encoding' in headers || 'content-length' in headers

/**
 * Node's parser continues after the socket is destroyed and creates a request for each head of the last read, which
 * takes 100 ms for 64 KiB on a busy machine. Returning 2 signals a protocol upgrade, which ends the parsing.
 */
function stopParsing(socket: Socket): void {
  const { parser } = socket as Socket & { parser?: { onIncoming: () => number } }
  if (parser) parser.onIncoming = () => 2
}

/**
 * Returns a function that is called with the bytes of each chunk of a body, and returns whether the body exceeds the
 * limit: a token bucket of 1,024 chunks, to which every 16 bytes and every 5 ms add one. Chunks are limited because
 * each costs more time than its bytes. Typing in a terminal stays below the limit.
 * @param now milliseconds of a monotonic clock
 */
export function makeChunkLimit(now?: () => number): (bytes: number) => boolean {
  const chunks = new TokenBuckets({ perSecond: 200, burst: 1_024 }, now)
  return (bytes) => chunks.spend('', 1 - bytes / 16) > 0
}

/** Destroys the connection of a body that arrives in too many small chunks, even if nothing reads the body. */
function limitChunks(request: IncomingMessage): void {
  const isExceededBy = makeChunkLimit()
  const push = request.push.bind(request)
  // Node's parser passes every chunk to `push`. A 'data' listener would start the stream before its reader does.
  request.push = (chunk: Buffer | null, encoding) => {
    if (chunk !== null && isExceededBy(chunk.length)) {
      request.socket.destroy()
      return false
    }
    return push(chunk, encoding)
  }
}

/** A chunked body has no Content-Length. */
const mayBeLong = ({ headers }: IncomingMessage): boolean =>
  'transfer-encoding' in headers || Number(headers['content-length'] ?? 0) > unreadBody.parsedBytes

function limitUnreadBody(request: IncomingMessage, response: ServerResponse): void {
  const writeHead = response.writeHead.bind(response) as (...args: unknown[]) => ServerResponse
  response.writeHead = (...args: unknown[]) => {
    if (!request.complete && mayBeLong(request)) response.shouldKeepAlive = false
    return writeHead(...args)
  }
  // Before Node's own listener, which closes the connection if no other request is expected.
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

/** Ends a socket that has left Node's server, after its pending bytes. */
export function closeGracefully(socket: Duplex): void {
  if (socket.destroyed) return
  socket.on('error', () => socket.destroy())
  const timer = setTimeout(() => socket.destroy(), lingerMs)
  socket.once('close', () => clearTimeout(timer))
  // Unread bytes would prevent the socket from closing, and the answer might be lost.
  socket.resume()
  socket.end()
}
