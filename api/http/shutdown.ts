/**
 * Requests that are open when the process stops. Those that finish in time are answered. The others get an error that
 * they may be retried.
 */
import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Problem } from '../../shared/platform/problem.ts'

/** Several layers listen for the end of a request. Node warns from 11 listeners on. */
const maxListeners = 20
/** Less than the default grace of a command, so a client that retries finds its command running. */
const retrySeconds = 1

const stopping = new Problem(
  'unavailable',
  'This API process is stopping. Repeat the request if it had an Idempotency-Key: it attaches to its command, which ' +
    'runs on for its grace_ms. Otherwise check first what was done: exec_id, where given, names the command.',
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
   * @returns a signal that aborts when the client leaves, or with {@link stoppingOf} when the process cannot wait any
   *   longer
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

  /** From now on, connections are closed after their answer. */
  closeBehind(): void {
    this.isClosing = true
    for (const response of this.open.keys()) response.shouldKeepAlive = false
  }

  /** Aborts the remaining requests. Workers see that the client has left, and give commands their grace. */
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
