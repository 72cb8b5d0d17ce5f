/** Connects a client's WebSocket to a worker. The API copies the bytes without parsing frames. */
import { addAbortListener } from 'node:events'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { type Agent, request as openRequest } from 'node:https'
import type { Duplex } from 'node:stream'
import { type Callee, provenTo } from '../../shared/rpc/channel.ts'
import { CallLost } from './hand-over.ts'

interface TunnelOptions {
  url: URL
  callee: Callee
  agent: Agent
  own: Record<string, string>
  /** Headers of the client's request. Only the WebSocket handshake headers are forwarded. */
  headers: IncomingHttpHeaders
  signal: AbortSignal
}

export interface Tunnel {
  response: IncomingMessage
  socket: Duplex
  head: Buffer
}

const openMs = 10_000
const lingerMs = 5_000

/** @throws {CallLost} if the worker does not respond */
export async function openTunnel(opening: TunnelOptions): Promise<Tunnel | { refusal: IncomingMessage }> {
  const { url, callee, agent, own, headers, signal } = opening
  const handshake = Object.entries(headers).filter(([name]) => name.startsWith('sec-websocket-'))
  const request = openRequest(url, {
    ...provenTo(callee),
    agent,
    headers: { ...Object.fromEntries(handshake), ...own, connection: 'Upgrade', upgrade: 'websocket' },
  })
  using _leaving = addAbortListener(signal, () => request.destroy())
  const timer = setTimeout(() => request.destroy(new Error('no response from the worker')), openMs)
  try {
    return await new Promise((resolve, reject) => {
      request.on('upgrade', (response, socket, head) => {
        socket.on('error', () => socket.destroy())
        resolve({ response, socket, head })
      })
      request.on('response', (refusal) => resolve({ refusal }))
      request.on('error', reject)
      request.on('close', () => reject(new Error('the connection was closed')))
      request.end()
    })
  } catch (error) {
    signal.throwIfAborted()
    throw new CallLost(error, callee.id)
  } finally {
    clearTimeout(timer)
  }
}

export function join(
  client: { socket: Duplex; head: Buffer; headers: Record<string, string> },
  worker: Tunnel,
): void {
  client.socket.write(headOf(worker.response, client.headers))
  if (worker.head.length > 0) client.socket.write(worker.head)
  if (client.head.length > 0) worker.socket.write(client.head)
  const pairs = [
    [client.socket, worker.socket],
    [worker.socket, client.socket],
  ] as const
  for (const [from, to] of pairs) {
    if ('setNoDelay' in from && typeof from.setNoDelay === 'function') from.setNoDelay(true)
    from.on('error', () => from.destroy())
    // A client may have closed its socket while the worker was responding. A closed socket emits no further
    // events.
    if (from.destroyed) closeSoon(to)
    else from.on('close', () => closeSoon(to))
    from.pipe(to)
  }
}

function headOf({ rawHeaders }: IncomingMessage, more: Record<string, string>): string {
  const lines = ['HTTP/1.1 101 Switching Protocols']
  for (let at = 0; at < rawHeaders.length; at += 2) lines.push(`${rawHeaders[at]}: ${rawHeaders[at + 1]}`)
  for (const [name, value] of Object.entries(more)) lines.push(`${name}: ${value}`)
  return `${lines.join('\r\n')}\r\n\r\n`
}

function closeSoon(socket: Duplex) {
  if (socket.destroyed) return
  const timer = setTimeout(() => socket.destroy(), lingerMs)
  socket.on('close', () => clearTimeout(timer))
  socket.end(() => socket.destroy())
}
