/** The RPC server, whose handshake requires a key of RPC_KEY. */
import { createServer } from 'node:https'
import type { Duplex } from 'node:stream'
import { limitRequest } from '../../shared/platform/sockets.ts'
import { acceptCallsTo } from '../../shared/rpc/channel.ts'
import { answer } from '../../shared/rpc/internal-server.ts'

/** Milliseconds without a byte of the handshake, the first one included. */
const handshakeMs = 5_000

export function openChannel(workerId: string, secrets: readonly string[]) {
  const options = {
    ...acceptCallsTo(workerId, secrets),
    handshakeTimeout: handshakeMs,
    // A streamed body may take as long as its sandbox lives.
    requestTimeout: 0,
  }
  const server = createServer(options, (request, response) => {
    if (!limitRequest(request, response)) return
    // Liveness checks use TLS, which proves that the answer is from this worker.
    const isKnown = request.url === '/healthz'
    answer(response, isKnown ? 200 : 404, { status: isKnown ? 'ok' : 'not found' })
  })
  const open = new Set<Duplex>()
  server.on('connection', (socket) => {
    open.add(socket)
    socket.on('close', () => open.delete(socket))
  })
  return {
    server,
    close() {
      server.close()
      for (const socket of open) socket.destroy()
    },
  }
}
