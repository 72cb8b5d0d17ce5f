import type { Duplex } from 'node:stream'
import { limits } from '../../shared/contract/limits.ts'
import { carryPort, portCloseCodes } from '../../shared/contract/port-stream.ts'
import { podOf } from '../../shared/data/sandboxes.ts'
import type { OnePort } from '../../shared/rpc/calls.ts'
import { PortRefused } from '../drivers/driver.ts'
import type { Opened } from '../rpc/call.ts'
import { enter, limitOpen, reachPod, type SandboxContext } from './enter.ts'

/**
 * Connects a WebSocket to a port in a sandbox. If no process is listening, the WebSocket is accepted and then
 * closed with the reason.
 * @throws {Problem} if the connection fails for another reason
 */
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
        onClose: (code) => close(stream, code),
      }),
    abandon: () => stream.destroy(),
  }
}

/**
 * Closes the connection to the port. After a normal close, bytes that the client has already sent are still
 * delivered.
 */
function close(stream: Duplex, code: number): void {
  if (code === portCloseCodes.ended) stream.end(() => stream.destroy())
  else stream.destroy()
}

const count = limitOpen(
  limits.connections,
  `This sandbox already has ${limits.connections} connections to its ports. Close one of them before you retry.`,
)

async function connectTo(worker: SandboxContext, call: OnePort): Promise<Duplex> {
  const { sandboxId, port } = call
  const { sandbox } = await enter(worker, call)
  const release = count(sandboxId)
  try {
    const stream = await reachPod(worker, sandbox, (now) => worker.driver.connect(podOf(now), port))
    return stream.once('close', release)
  } catch (error) {
    release()
    throw error
  }
}

const isRefused = (error: Error): boolean => error instanceof PortRefused

function portCloseOf(failure: Error | undefined, port: number): [code: number, reason: string] {
  if (!failure) return [portCloseCodes.ended, 'the listener closed the connection']
  return isRefused(failure)
    ? [portCloseCodes.refused, `no process is listening on port ${port} in the sandbox`]
    : [portCloseCodes.broken, 'the connection broke, or the sandbox was destroyed']
}
