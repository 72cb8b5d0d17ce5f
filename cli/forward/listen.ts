/** Forwards local ports. Each local connection uses its own WebSocket. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { carryPort, portCloseCodes, sendEof } from '../../shared/contract/port-stream.ts'
import type { Api } from '../core/api.ts'
import { CliError, describeError } from '../core/errors.ts'
import { openWebSocket } from '../core/websocket.ts'
import type { ForwardedPort } from './ports.ts'

/** Local address to listen on, which other machines cannot reach. */
const host = '127.0.0.1'

interface Forwarding {
  api: Api
  id: string
  note(text: string): void
  /** Called when a connection fails, for example because the session has ended. */
  onFailure(error?: CliError): void
}

interface Listening extends ForwardedPort {
  close(): void
}

/** @throws {CliError} `failed` if the port cannot be used */
export async function listen({ local, remote }: ForwardedPort, forwarding: Forwarding): Promise<Listening> {
  const open = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (connection) => {
    open.add(connection)
    connection.on('error', () => connection.destroy()).on('close', () => open.delete(connection))
    void forward(connection, remote, forwarding)
  })
  server.listen(local, host)
  try {
    await once(server, 'listening')
  } catch (error) {
    throw cannotListen({ local, remote }, error as NodeJS.ErrnoException)
  }
  return {
    local: (server.address() as AddressInfo).port,
    remote,
    close() {
      server.close()
      for (const connection of open) connection.destroy()
    },
  }
}

async function forward(connection: Socket, port: number, forwarding: Forwarding): Promise<void> {
  const { api, id, note, onFailure } = forwarding
  try {
    const socket = await openWebSocket(await api.addressOf('connectPort', { params: { id, port } }))
    carryPort(socket, connection, {
      onEnd: (failure) => (failure ? socket.terminate() : sendEof(socket)),
      onClose(code, reason) {
        if (code === portCloseCodes.ended) return void connection.end()
        connection.resetAndDestroy()
        if (code === portCloseCodes.refused) note(`sandlot: ${reason}`)
        else onFailure()
      },
    })
    if (connection.destroyed) socket.terminate()
    connection.on('close', () => socket.terminate()).resume()
  } catch (error) {
    connection.resetAndDestroy()
    onFailure(describeError(error))
  }
}

function cannotListen({ local, remote }: ForwardedPort, { code, message }: NodeJS.ErrnoException): CliError {
  const reason =
    code === 'EADDRINUSE' ? 'it is in use' : code === 'EACCES' ? 'it requires root privileges' : message
  return new CliError('failed', `Cannot listen on local port ${local}: ${reason}.`, {
    hint: `\`sandlot forward :${remote}\` picks a free port, and \`sandlot forward LOCAL:${remote}\` uses the port LOCAL.`,
  })
}
