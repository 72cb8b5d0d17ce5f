/** Requests for a WebSocket: they go the way of every other request, and their socket is kept beside it. */
import { type IncomingMessage, type RequestListener, type Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { endSoon } from '../../shared/platform/sockets.ts'

/** A client's side of it, not yet answered. */
export interface Upgrade {
  socket: Duplex
  head: Buffer
}

const upgrades = new WeakMap<IncomingMessage, Upgrade>()

export const upgradeOf = (request: IncomingMessage): Upgrade | undefined => upgrades.get(request)

/** Only these leave the way of other requests; what else asks for another protocol does not get it. */
export const shouldUpgradeCallback = ({ headers }: IncomingMessage): boolean =>
  headers.upgrade?.toLowerCase() === 'websocket'

/**
 * Serves requests for a WebSocket as any other: the same credentials, limits and errors, and a plain
 * answer when it is refused.
 * @returns what ends those that are open
 */
export function serveUpgrades(server: Server, serve: RequestListener): () => void {
  const open = new Set<Duplex>()
  server.on('upgrade', (request, socket: Duplex, head) => {
    open.add(socket)
    socket.on('close', () => open.delete(socket))
    socket.on('error', () => socket.destroy())
    upgrades.set(request, { socket, head })
    const response = new ServerResponse(request)
    response.shouldKeepAlive = false
    response.assignSocket(socket as never)
    response.on('finish', () => endSoon(socket))
    void serve(request, response)
  })
  return () => {
    for (const socket of open) socket.destroy()
  }
}
