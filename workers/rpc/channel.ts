/**
 * Calls share the worker's internal port with health and metrics: what begins as TLS does is a call, everything
 * else is for the plain server, which takes no calls.
 */
import type { Server } from 'node:http'
import { type Server as CallServer, createServer } from 'node:https'
import type { Socket } from 'node:net'
import { acceptCallsTo } from '../../shared/rpc/channel.ts'

/** How a TLS connection begins: a record of a handshake. */
const handshakeRecord = 22
/** For the first byte, and for the handshake. */
const beginMs = 5_000

export interface Channel {
  server: CallServer
  /** Ends all of its connections. */
  close(): void
}

/** @param plain takes all connections of the port until now */
export function openChannel(plain: Server, workerId: string, secrets: readonly string[]): Channel {
  const server = createServer({
    ...acceptCallsTo(workerId, secrets),
    handshakeTimeout: beginMs,
    // A client's own body may take as long as its sandbox lives.
    requestTimeout: 0,
  })
  // Whether it lives is asked of the worker itself, not of who answers at its address.
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
