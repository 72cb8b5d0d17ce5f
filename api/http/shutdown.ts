/**
 * Ends open requests during a shutdown. A request that does not finish in time receives an error that asks
 * the client to retry.
 */
import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Problem } from '../../shared/platform/problem.ts'

/**
 * Number of listeners per response above which Node prints a warning. Node's default of 10 is too low,
 * because several layers listen for the end of a request.
 */
const maxListeners = 20
/**
 * `Retry-After`, in seconds. It is shorter than a command's default grace period, so the command is still
 * running when the client retries.
 */
const retrySeconds = 1

const stopping = new Problem(
  'unavailable',
  'This API process is stopping. If the request had an Idempotency-Key, retry it with that key. A command that it ' +
    'started keeps running for grace_ms, and the retry attaches to it. Without a key, first check whether the ' +
    'request took effect. If exec_id is present, it identifies the command.',
  { retryAfterSeconds: retrySeconds },
)

/** Returns undefined if the request was aborted for a reason other than shutdown. */
export const stoppingOf = ({ reason }: AbortSignal): Problem | undefined =>
  reason === stopping ? stopping : undefined

export const hasDisconnected = (signal: AbortSignal): boolean => signal.aborted && !stoppingOf(signal)

export class OpenRequests {
  private readonly open = new Map<ServerResponse, AbortController>()
  private isClosing = false
  private hasGivenUp = false

  /**
   * @returns a signal that aborts when the client disconnects, or when this process is stopping and cannot
   *   wait any longer. In the second case, {@link stoppingOf} returns the error.
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

  closeBehind(): void {
    this.isClosing = true
    for (const response of this.open.keys()) response.shouldKeepAlive = false
  }

  /** Aborts all open requests, which starts the grace periods of their commands. */
  giveUp(): void {
    this.hasGivenUp = true
    for (const gone of this.open.values()) gone.abort(stopping)
  }
}

/**
 * Returns a function that closes connections on which no byte has been received. Node does not treat such
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
