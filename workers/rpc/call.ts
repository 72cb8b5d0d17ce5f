import type { IncomingMessage, ServerResponse } from 'node:http'
import type { WebSocket } from 'ws'
import type { Reservation } from '../../shared/platform/memory-budget.ts'
import {
  argsHeader,
  type CallName,
  type Calls,
  type StreamCallName,
  type Streams,
} from '../../shared/rpc/calls.ts'

/**
 * Whether the API is still waiting for the response. Resolves with false if the API has disconnected, or if
 * this worker's event loop stalled for so long that the API may consider the worker lost.
 */
type IsAwaited = () => Promise<boolean>

export interface Wire {
  request: IncomingMessage
  response: ServerResponse
  signal: AbortSignal
  isAwaited: IsAwaited
  /** Aborts when the worker starts to drain. A call of unlimited duration, such as a watch, must then end. */
  draining: AbortSignal
  /**
   * Memory reserved for the request body, for a stream's buffers and for the reply of a read, until the
   * response has been sent.
   */
  held: Reservation
}

export type CallHandler<N extends CallName, Worker> = (
  args: Calls[N]['args'],
  worker: Worker,
  wire: Wire,
) => Promise<Calls[N]['result']>

/**
 * Handles an RPC with a streamed response. If the response is JSON instead, resolves with it.
 * @throws {Problem} for the client
 */
export type StreamHandler<N extends StreamCallName, Worker> = (
  args: Streams[N]['args'],
  worker: Worker,
  wire: Wire,
) => Promise<object | undefined>

export type CallHandlers<Worker> = { [N in CallName]: CallHandler<N, Worker> } & {
  [N in StreamCallName]: StreamHandler<N, Worker>
}

/** A WebSocket that a handler has accepted. Exactly one of `serve` and `abandon` is called. */
export interface Opened {
  serve(socket: WebSocket): void
  /** Called instead of `serve` if the client has disconnected or its handshake was invalid. */
  abandon?(): void
}

/** WebSocket handlers, by path. @throws {Problem} if the connection is refused */
export type SocketHandlers<Worker> = Record<string, (worker: Worker, args: never) => Promise<Opened>>

/** Reads an RPC's arguments from a header, because the body contains the client's data. */
export const argsOf = (request: IncomingMessage): unknown =>
  JSON.parse(Buffer.from(String(request.headers[argsHeader]), 'base64url').toString('utf8'))
