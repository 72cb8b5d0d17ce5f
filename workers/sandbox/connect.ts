/** Connections to ports of sandboxes. */
import type { Duplex } from 'node:stream'
import { limits } from '../../shared/contract/limits.ts'
import { portCloseCodes } from '../../shared/contract/port-stream.ts'
import { podOf } from '../../shared/data/sandboxes.ts'
import { Problem } from '../../shared/platform/problem.ts'
import type { OnePort } from '../../shared/rpc/calls.ts'
import { PortRefused } from '../drivers/driver.ts'
import { enter, reachPod, type SandboxContext } from './enter.ts'

/** How many each sandbox has. */
const open = new Map<string, number>()

/**
 * @throws {Problem} the sandbox does not run, cannot be reached, or has too many connections
 * @throws {PortRefused} nobody listens
 */
export async function connectTo(worker: SandboxContext, call: OnePort): Promise<Duplex> {
  const { sandboxId, port } = call
  const { sandbox } = await enter(worker, call)
  const count = open.get(sandboxId) ?? 0
  if (count >= limits.connections) throw tooMany()
  open.set(sandboxId, count + 1)
  try {
    const stream = await reachPod(worker, sandbox, (now) => worker.driver.connect(podOf(now), port))
    return stream.once('close', () => leave(sandboxId))
  } catch (error) {
    leave(sandboxId)
    throw error
  }
}

function leave(sandboxId: string): void {
  const left = open.get(sandboxId)! - 1
  if (left > 0) open.set(sandboxId, left)
  else open.delete(sandboxId)
}

const tooMany = () =>
  new Problem(
    'rate_limited',
    `This sandbox has ${limits.connections} connections to its ports. Wait until one of them is over.`,
    { retryAfterSeconds: 1 },
  )

export const isRefused = (error: Error): boolean => error instanceof PortRefused

/** How the WebSocket of a connection is closed that has ended, or has failed. */
export function portCloseOf(failure: Error | undefined, port: number): [code: number, reason: string] {
  if (!failure) return [portCloseCodes.ended, 'the listener ended the connection']
  return isRefused(failure)
    ? [portCloseCodes.refused, `nobody listens at port ${port} in the sandbox`]
    : [portCloseCodes.broken, 'the connection broke, or the sandbox ended']
}
