/** Ends open requests during a shutdown. A request that does not finish in time gets a retryable error. */
import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Problem } from '../../shared/platform/problem.ts'

const stopping = new Problem(
  'unavailable',
  'This API process is stopping. If the request had an Idempotency-Key, retry it with that key. A command that it ' +
    'started keeps running for grace_ms, and the retry attaches to it. Without a key, first check whether the ' +
    'request took effect. If exec_id is present, it identifies the command.',
  // Shorter than a command's default grace period, so that the command is still running at the retry.
  { retryAfterSeconds: 1 },
)

/** Returns the shutdown error if the shutdown aborted the request, otherwise undefined. */
export const stoppingOf = ({ reason }: AbortSignal): Problem | undefined =>
  reason === stopping ? stopping : undefined

export const hasDisconnected = (signal: AbortSignal): boolean => signal.aborted && !stoppingOf(signal)

export class OpenRequests {
  private readonly open = new Map<ServerResponse, AbortController>()
  private isClosing = false
  private hasGivenUp = false

  /** Returns a signal that aborts when the client disconnects, or at the end of a shutdown. */
  follow(response: ServerResponse): AbortSignal {
    const gone = new AbortController()
    this.open.set(response, gone)
    // Several layers listen for the end of a request. Node would warn about more than ten listeners.
    response.setMaxListeners(20)
    response.once('close', () => {
      this.open.delete(response)
      if (!response.writableFinished) gone.abort()
    })
    if (this.isClosing) response.shouldKeepAlive = false
    if (this.hasGivenUp) gone.abort(stopping)
    return gone.signal
  }

  closeBehind(): void {
    this.isClosing = true
    for (const response of this.open.keys()) response.shouldKeepAlive = false
  }

  /** Aborts all open requests. Commands that lose their client keep running for their grace period. */
  giveUp(): void {
    this.hasGivenUp = true
    for (const gone of this.open.values()) gone.abort(stopping)
  }
}

/**
 * Returns a function that closes connections on which no byte has arrived. Node does not treat such
 * connections as idle.
 */
export function trackUnused(server: Server): () => void {
  const open = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })
  return () => {
    for (const socket of open) if (socket.bytesRead === 0) socket.destroy()
  }
}
