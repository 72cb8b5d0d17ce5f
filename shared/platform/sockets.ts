/** How connections end whose other side may be anybody: after their answer, and soon, whatever still comes. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

/** How long an answer may take to reach who was refused, on a connection that carries nothing else. */
const lingerMs = 2_000
/**
 * What comes of a body behind its answer is read away: many clients look for the answer only when all is
 * sent, and closing on unread bytes takes it from them. But only so much, and not for ever.
 */
const rest = { ms: 15_000, bytes: 64 * 1024 * 1024, lookEveryMs: 500 }

/** Ends a socket that has left the server behind what was written to it; its other side need do nothing for it. */
export function endSoon(socket: Duplex): void {
  if (socket.destroyed) return
  socket.on('error', () => socket.destroy())
  const timer = setTimeout(() => socket.destroy(), lingerMs)
  socket.once('close', () => clearTimeout(timer))
  // With bytes that nobody has read it would never close, and the answer might be lost with them.
  socket.resume()
  socket.end()
}

/** From the answer on, a request whose body is not wholly there has the time and bytes of {@link rest}. */
export function boundRest(request: IncomingMessage, response: ServerResponse): void {
  // Before Node's own listener, which closes at once where no other request is to come.
  response.prependOnceListener('finish', () => {
    const { socket } = request
    if (request.complete || socket.destroyed) return
    const isLast = !response.shouldKeepAlive
    if (isLast) socket.destroySoon = () => void socket.end()
    const answered = { at: performance.now(), bytes: socket.bytesRead }
    const timer = setInterval(() => {
      const isOver =
        performance.now() - answered.at > rest.ms || socket.bytesRead - answered.bytes > rest.bytes
      if (request.complete) clearInterval(timer)
      if (request.complete ? isLast : isOver) socket.destroy()
    }, rest.lookEveryMs)
    socket.once('close', () => clearInterval(timer))
  })
}
