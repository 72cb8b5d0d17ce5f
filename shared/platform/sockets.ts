/** Limits on the HTTP connections of a server, so that no client's input costs more to handle than to send. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { TokenBuckets } from '../lib/token-buckets.ts'

/** Node parses all pipelined requests of one read in the same turn of the event loop. Clients pipeline only a few. */
const maxUnanswered = 8

/** Milliseconds until an ended connection is destroyed: the answer needs time to arrive. */
const lingerMs = 2_000

/**
 * How much of a body is still read after its answer. Many clients look at the answer only after they have sent
 * everything, and closing a connection with unread bytes resets it, which can discard that answer. A connection whose
 * body may be longer than 256 KiB carries no further request, and the rest of the body is dropped without being parsed.
 */
const unreadBody = { ms: 15_000, parsedBytes: 256 * 1024, bytes: 64 * 1024 * 1024 }

const unansweredOf = new WeakMap<Socket, number>()

/**
 * Applies the limits of a connection to one of its requests. Call it before anything else handles the request.
 * @returns false when the connection is destroyed: it has more than 8 unanswered requests
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
    limitPieces(request)
    limitUnreadBody(request, response)
  }
  return true
}

/**
 * Calls back when a response has left or its connection has closed, immediately if that has already happened. A plain
 * 'close' listener that is added after an `await` may be too late, and would never be called.
 */
export function onceClosed(response: ServerResponse, callback: () => void): void {
  if (response.closed) callback()
  else response.once('close', callback)
}

const hasBody = ({ headers }: IncomingMessage): boolean =>
  'transfer-encoding' in headers || 'content-length' in headers

/**
 * Node's parser continues after the socket is destroyed: it creates a request for each head of the last read, which
 * takes 100 ms for 64 KiB on a busy machine. Returning 2 signals a protocol upgrade, which ends the parsing.
 */
function stopParsing(socket: Socket): void {
  const { parser } = socket as Socket & { parser?: { onIncoming: () => number } }
  if (parser) parser.onIncoming = () => 2
}

/**
 * Returns whether a body has more than 1,024 unpaid chunks, called with the bytes of each: handling a chunk costs more
 * than its bytes. Every 16 bytes and every 5 ms pay for one, so a person who types stays below the limit.
 * @param now milliseconds of a monotonic clock
 */
export function makePieceLimit(now?: () => number): (bytes: number) => boolean {
  const pieces = new TokenBuckets({ perSecond: 200, burst: 1_024 }, now)
  return (bytes) => pieces.spend('', 1 - bytes / 16) > 0
}

/** Destroys the connection of a body that arrives in too many small chunks, whether or not somebody reads it. */
function limitPieces(request: IncomingMessage): void {
  const isExceededBy = makePieceLimit()
  const push = request.push.bind(request)
  // Node's parser hands every chunk to `push`. A 'data' listener would start the stream before its reader does.
  request.push = (chunk: Buffer | null, encoding) => {
    if (chunk !== null && isExceededBy(chunk.length)) {
      request.socket.destroy()
      return false
    }
    return push(chunk, encoding)
  }
}

/** A body in chunks does not announce its length. */
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
  // With unread bytes it would never close, and the answer might be lost with them.
  socket.resume()
  socket.end()
}
