/** A WebSocket to a port of a sandbox: what its client sends, the listener gets, and the other way round. */
import type { Duplex } from 'node:stream'
import { carryPort, portCloseCodes } from '../../shared/contract/port-stream.ts'
import type { OnePort } from '../../shared/rpc/calls.ts'
import { connectTo, isRefused, portCloseOf } from '../sandbox/connect.ts'
import type { SandboxContext } from '../sandbox/enter.ts'
import type { Opened } from './opened.ts'

/** @throws {Problem} when there can be no connection. That nobody listens is told on the WebSocket */
export async function openPort(worker: SandboxContext, args: OnePort): Promise<Opened> {
  const stream = await connectTo(worker, args).catch((error: Error) => {
    if (isRefused(error)) return error
    throw error
  })
  if (stream instanceof Error) return { serve: (socket) => socket.close(...portCloseOf(stream, args.port)) }
  return {
    serve: (socket) =>
      carryPort(socket, stream, {
        onEnd: (failure) => socket.close(...portCloseOf(failure, args.port)),
        onClose: (code) => leave(stream, code),
      }),
    abandon: () => stream.destroy(),
  }
}

/** What a client sent before it closed reaches the listener. */
function leave(stream: Duplex, code: number): void {
  if (code === portCloseCodes.ended) stream.end(() => stream.destroy())
  else stream.destroy()
}
