/**
 * Calls share the worker's internal port with health and metrics. A connection that begins as TLS does carries calls;
 * any other goes to the plain server, which takes none.
 */
import type { Server } from 'node:http'
import { createServer } from 'node:https'
import type { Socket } from 'node:net'
import { acceptCallsTo } from '../../shared/rpc/channel.ts'

/** The first byte of a TLS connection: a handshake record. */
const handshakeRecord = 22
/** Milliseconds for the first byte, and for the handshake. */
const beginMs = 5_000

/**
 * @param plain the server that takes all connections of the port so far
 * @returns the server of calls; `close` ends all of its connections
 */
export function openChannel(plain: Server, workerId: string, secrets: readonly string[]) {
  const server = createServer({
    ...acceptCallsTo(workerId, secrets),
    handshakeTimeout: beginMs,
    // A streamed body may take as long as its sandbox lives.
    requestTimeout: 0,
  })
  // The API asks over TLS whether a worker lives, so the answer is that worker's and not of whoever has its address.
  server.on('request', (request, response) => plain.emit('request', request, response))
  const open = new Set<Socket>()
  const passOn = plain.listeners('connection') as ((socket: Socket) => void)[]
  plain.removeAllListeners('connection')
  plain.on('connection', (socket: Socket) => {
    socket.on('error', () => socket.destroy())
    const timer = setTimeout(() => socket.destroy(), beginMs)
    socket.on('close', () => clearTimeout(timer))
    socket.once('readable', () => {
      clearTimeout(timer)
      const bytes = socket.read() as Buffer | null
      if (!bytes) return socket.destroy()
      socket.unshift(bytes)
      if (bytes[0] !== handshakeRecord) {
        for (const take of passOn) take.call(plain, socket)
        return
      }
      open.add(socket)
      socket.on('close', () => open.delete(socket))
      server.emit('connection', socket)
    })
  })
  return {
    server,
    close() {
      for (const socket of open) socket.destroy()
    },
  }
}
