import { createServer } from 'node:https'
import type { Duplex } from 'node:stream'
import { limitRequest } from '../../shared/platform/sockets.ts'
import { acceptCallsTo } from '../../shared/rpc/channel.ts'
import { answer } from '../../shared/rpc/internal-server.ts'

const handshakeMs = 5_000

export function openChannel(workerId: string, secrets: readonly string[]) {
  const options = {
    ...acceptCallsTo(workerId, secrets),
    handshakeTimeout: handshakeMs,
    // A streamed body may last until its sandbox is destroyed.
    requestTimeout: 0,
  }
  const server = createServer(options, (request, response) => {
    if (!limitRequest(request, response)) return
    // Liveness checks use TLS, which proves that this worker sent the response.
    const isHealthCheck = request.url === '/healthz'
    answer(response, isHealthCheck ? 200 : 404, { status: isHealthCheck ? 'ok' : 'not found' })
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
