/** Requests for a WebSocket, which pass the same steps as every other request. */
import { type IncomingMessage, type RequestListener, type Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { closeGracefully } from '../../shared/platform/sockets.ts'
import { invalid } from '../errors/invalid.ts'

/** The client's connection before the handshake of a WebSocket is answered. */
export interface Upgrade {
  socket: Duplex
  head: Buffer
  /** Added to those of the handshake. */
  headers: Record<string, string>
}

const upgrades = new WeakMap<IncomingMessage, Upgrade>()

export const upgradeOf = (request: IncomingMessage): Upgrade | undefined => upgrades.get(request)

export function requireUpgrade({ upgrade }: { upgrade: Upgrade | undefined }): Upgrade {
  if (upgrade) return upgrade
  throw invalid({ path: 'upgrade', message: 'is required, because this route accepts only WebSockets' })
}

/** Upgrades to other protocols are ignored. */
export const shouldUpgradeCallback = ({ headers }: IncomingMessage): boolean =>
  headers.upgrade?.toLowerCase() === 'websocket'

/**
 * Serves requests for a WebSocket like all others, with the same credentials, limits and errors. A socket that leaves
 * Node's server needs an error listener, or a reset would end the process.
 * @returns a function that closes the open sockets
 */
export function serveUpgrades(server: Server, serve: RequestListener): () => void {
  const open = new Set<Duplex>()
  server.on('upgrade', (request, socket: Duplex, head) => {
    open.add(socket)
    socket.on('close', () => open.delete(socket))
    socket.on('error', () => socket.destroy())
    upgrades.set(request, { socket, head, headers: {} })
    const response = new ServerResponse(request)
    response.shouldKeepAlive = false
    response.assignSocket(socket as never)
    response.on('finish', () => closeGracefully(socket))
    void serve(request, response)
  })
  return () => {
    for (const socket of open) socket.destroy()
  }
}
