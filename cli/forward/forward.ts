import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { carryPort, portCloseCodes, sendEof } from '../../shared/contract/port-stream.ts'
import { shellWord } from '../../shared/contract/shell-words.ts'
import type { Api } from '../core/api.ts'
import { CliError, describeError } from '../core/errors.ts'
import { openWebSocket } from '../core/websocket.ts'

/** Local address of forwarded ports. Other machines cannot reach them. */
const host = '127.0.0.1'
const maxPort = 65_535
/** Interval between checks that the session is active. A failed connection triggers a check immediately. */
const pollMs = 5_000

interface ForwardedPort {
  /** Local port, or 0 for any free port. */
  local: number
  remote: number
}

/** Parses `3000`, `8080:3000` or `:3000`. @throws {CliError} `usage` */
export function readPort(text: string, _: number, all: string[]): ForwardedPort {
  const [, local, remote] = /^(?:(\d*):)?(\d+)$/.exec(text) ?? []
  const ports = { local: Number(local ?? remote), remote: Number(remote) }
  if (remote !== undefined && ports.remote >= 1 && ports.remote <= maxPort && ports.local <= maxPort)
    return ports
  const message = `${JSON.stringify(text)} is not PORT or LOCAL:PORT, with ports from 1 to ${maxPort}.`
  throw new CliError('usage', message, { hint: hintFor(text, all) })
}

/** Suggests --session if the user typed a session name before the port, as kubectl expects. */
function hintFor(text: string, all: string[]): string {
  const port = all.find((each) => /^(?:\d*:)?\d+$/.test(each))
  if (port !== undefined && !/[\d:]/.test(text[0]!))
    return `\`sandlot forward --session ${shellWord(text)} ${port}\` forwards to a port of session ${shellWord(text)}.`
  return '`sandlot forward 8080:3000` forwards local port 8080 to port 3000 of the session.'
}

interface Forwarding {
  api: Api
  id: string
  note(text: string): void
  /** Called when a forwarded connection fails, for example because the session has ended. */
  onFailure(error?: CliError): void
}

interface Listening extends ForwardedPort {
  close(): void
}

/**
 * Listens on a local port and forwards each connection over its own WebSocket.
 * @throws {CliError} `failed` if the port cannot be used
 */
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

/**
 * Polls the session until it ends.
 * @param onPause receives, after each poll, a function that starts the next poll without further delay
 * @throws {CliError} when the session has ended or is not accessible
 */
export async function waitUntilDestroyed(
  api: Api,
  id: string,
  onPause: (poll: () => void) => void,
): Promise<never> {
  for (;;) {
    await assertActive(api, id)
    const pause = new AbortController()
    onPause(() => pause.abort())
    await sleep(pollMs, undefined, { signal: pause.signal }).catch(() => {})
  }
}

async function assertActive(api: Api, id: string): Promise<void> {
  const session = await api.call('getSandbox', { params: { id } }).catch((error) => {
    // These failures may be temporary.
    if (error instanceof CliError && temporary.has(error.code)) return undefined
    throw error
  })
  if (!session?.destroyed_at) return
  throw new CliError('sandbox_destroyed', `The session has ended (${session.destroy_reason}).`, {
    hint: '`sandlot session create` creates a new session.',
  })
}

const temporary = new Set(['network', 'unavailable', 'rate_limited', 'unexpected_answer', 'internal_error'])
