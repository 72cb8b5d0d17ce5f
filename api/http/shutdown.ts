/**
 * Open requests of a stopping process. Those that do not finish in time get an error that asks the client to retry.
 */
import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Problem } from '../../shared/platform/problem.ts'

/** Several layers listen for the end of a request, and Node warns from 11 listeners on. */
const maxListeners = 20
/** Less than the default grace of a command, so a client that retries finds its command running. */
const retrySeconds = 1

const stopping = new Problem(
  'unavailable',
  'This API process is stopping. If the request had an Idempotency-Key, repeat it to attach to its command, which keeps ' +
    'running for its grace_ms. Otherwise, first check whether it took effect; exec_id, if present, identifies the command.',
  { retryAfterSeconds: retrySeconds },
)

/** Returns the error for a request that was aborted because this process stops. */
export const stoppingOf = ({ reason }: AbortSignal): Problem | undefined =>
  reason === stopping ? stopping : undefined

export const hasDisconnected = (signal: AbortSignal): boolean => signal.aborted && !stoppingOf(signal)

export class OpenRequests {
  private readonly open = new Map<ServerResponse, AbortController>()
  private isClosing = false
  private hasGivenUp = false

  /**
   * @returns a signal that aborts when the client disconnects, or with {@link stoppingOf} when the process cannot wait
   *   any longer
   */
  follow(response: ServerResponse): AbortSignal {
    const gone = new AbortController()
    this.open.set(response, gone)
    response.setMaxListeners(maxListeners)
    response.once('close', () => {
      this.open.delete(response)
      if (!response.writableFinished) gone.abort()
    })
    if (this.isClosing) response.shouldKeepAlive = false
    if (this.hasGivenUp) gone.abort(stopping)
    return gone.signal
  }

  /** Closes connections after their current or next response. */
  closeBehind(): void {
    this.isClosing = true
    for (const response of this.open.keys()) response.shouldKeepAlive = false
  }

  /** Aborts the remaining requests. For workers this is a disconnected client, so the grace of commands begins. */
  giveUp(): void {
    this.hasGivenUp = true
    for (const gone of this.open.values()) gone.abort(stopping)
  }
}

/** Returns a function that closes connections which never received a byte. Node does not count those as idle. */
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
