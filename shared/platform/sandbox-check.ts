import type { SandboxRow } from '../data/sandboxes.ts'
import { Problem } from './problem.ts'

type EndedSandbox = Pick<SandboxRow, 'id' | 'destroy_reason' | 'destroy_detail'>

export function refuseMissing(): never {
  throw new Problem('not_found', 'The sandbox does not exist.')
}

/** @throws {Problem} `sandbox_destroyed` or `sandbox_starting` if the sandbox is not running */
export function assertRunning(sandbox: EndedSandbox & Pick<SandboxRow, 'ready_at' | 'destroyed_at'>): void {
  if (sandbox.destroyed_at) refuseDestroyed(sandbox)
  if (sandbox.ready_at) return
  throw new Problem('sandbox_starting', 'The sandbox is still starting. Try again in a moment.', {
    retryAfterSeconds: 2,
  })
}

export function refuseDestroyed({ id, destroy_reason, destroy_detail }: EndedSandbox): never {
  const why = [destroy_reason, destroy_detail].filter(Boolean).join(', ')
  throw new Problem('sandbox_destroyed', `The sandbox has been destroyed (${why}). Create a new one.`, {
    members: { sandbox_id: id, destroy_reason, destroy_detail },
  })
}
