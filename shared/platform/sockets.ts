/** Ends connections with clients: after their answer, and soon, whatever they still send. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

/** Milliseconds for the answer of a refusal to arrive, on a connection that carries nothing else. */
const lingerMs = 2_000
/**
 * How much of a body is read and dropped after its answer. Many clients look for the answer only when they have sent
 * all, and closing on unread bytes would take it from them. But this must not go on for ever.
 */
const rest = { ms: 15_000, bytes: 64 * 1024 * 1024, lookEveryMs: 500 }

/** Ends a socket that has left Node's server, after what was written to it. The other side need do nothing. */
export function endSoon(socket: Duplex): void {
  if (socket.destroyed) return
  socket.on('error', () => socket.destroy())
  const timer = setTimeout(() => socket.destroy(), lingerMs)
  socket.once('close', () => clearTimeout(timer))
  // With unread bytes it would never close, and the answer might be lost with them.
  socket.resume()
  socket.end()
}

/** Once it is answered, a request whose body is not complete has the time and bytes of {@link rest}. */
export function boundRest(request: IncomingMessage, response: ServerResponse): void {
  // Before Node's own listener, which closes at once where no other request is expected.
  response.prependOnceListener('finish', () => {
    const { socket } = request
    if (request.complete || socket.destroyed) return
    const isLast = !response.shouldKeepAlive
    if (isLast) socket.destroySoon = () => void socket.end()
    const answered = { at: performance.now(), bytes: socket.bytesRead }
    const timer = setInterval(() => {
      const isOver =
        performance.now() - answered.at > rest.ms || socket.bytesRead - answered.bytes > rest.bytes
      // Not a listener each: a connection that is kept would gather them.
      if (request.complete || socket.destroyed) clearInterval(timer)
      if (request.complete ? isLast : isOver) socket.destroy()
    }, rest.lookEveryMs).unref()
  })
}
