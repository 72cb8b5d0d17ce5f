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
 * Whether the API still waits at this moment. A hang-up that is not read yet counts. The API also does not wait any
 * more once this process stood still for so long that it may have been taken for lost.
 */
export type IsAwaited = () => Promise<boolean>

/** The connection of a call. A streamed one reads the client's body from it, and writes its answer to it. */
export interface Wire {
  request: IncomingMessage
  response: ServerResponse
  /** Aborts when the API disconnects. */
  signal: AbortSignal
  isAwaited: IsAwaited
  /** Counts the call's body, and a stream's buffers, until the answer has been sent. */
  held: Reservation
}

/** Answers one call of the API. Throws a Problem for the client. */
export type CallHandler<N extends CallName, Worker> = (
  args: Calls[N]['args'],
  worker: Worker,
  wire: Wire,
) => Promise<Calls[N]['result']>

/**
 * Answers one call whose body or answer is streamed. Resolves with the answer if that is JSON.
 * @throws {Problem} for the client, unless the answer has begun
 */
export type StreamHandler<N extends StreamCallName, Worker> = (
  args: Streams[N]['args'],
  worker: Worker,
  wire: Wire,
) => Promise<object | undefined>

export type CallHandlers<Worker> = { [N in CallName]: CallHandler<N, Worker> } & {
  [N in StreamCallName]: StreamHandler<N, Worker>
}

/** One of the two is called. */
export interface Opened {
  serve(socket: WebSocket): void
  /** Called when the client has left, or its handshake was invalid. */
  abandon?(): void
}

/**
 * Who serves the WebSockets of which path.
 * @throws {Problem} why one is refused
 */
export type SocketHandlers<Worker> = Record<string, (worker: Worker, args: never) => Promise<Opened>>

/** The arguments in a header, where the body is the client's. */
export const argsOf = (request: IncomingMessage): unknown =>
  JSON.parse(Buffer.from(String(request.headers[argsHeader]), 'base64url').toString('utf8'))
