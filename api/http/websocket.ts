import { type IncomingMessage, type RequestListener, type Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { closeGracefully } from '../../shared/platform/sockets.ts'
import { invalid } from '../errors/invalid.ts'

export interface Upgrade {
  socket: Duplex
  head: Buffer
  headers: Record<string, string>
}

const upgrades = new WeakMap<IncomingMessage, Upgrade>()

export const upgradeOf = (request: IncomingMessage): Upgrade | undefined => upgrades.get(request)

export function requireUpgrade({ upgrade }: { upgrade: Upgrade | undefined }): Upgrade {
  if (upgrade) return upgrade
  throw invalid({ path: 'upgrade', message: 'is required, because this route accepts only WebSockets' })
}

/** Whether to accept an upgrade. Node serves upgrade requests for other protocols as ordinary requests. */
export const shouldUpgradeCallback = ({ headers }: IncomingMessage): boolean =>
  headers.upgrade?.toLowerCase() === 'websocket'

/**
 * Serves WebSocket requests.
 * @returns a function that closes their sockets, which Node detaches from the server
 */
export function serveUpgrades(server: Server, serve: RequestListener): () => void {
  const open = new Set<Duplex>()
  server.on('upgrade', (request, socket: Duplex, head) => {
    open.add(socket)
    socket.on('close', () => open.delete(socket))
    // Without this listener, a connection reset would crash the process.
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
