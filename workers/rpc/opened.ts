import type { WebSocket } from 'ws'

/** What a WebSocket was asked for. One of the two is called. */
export interface Opened {
  serve(socket: WebSocket): void
  /** There is no WebSocket: the client has left, or its handshake was wrong. */
  abandon?(): void
}
