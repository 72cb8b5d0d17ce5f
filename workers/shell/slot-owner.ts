/**
 * Which sandboxes' slots this worker owns. The API sends a sandbox's commands to the first worker in the order of
 * shared/rpc/worker-registry.ts, and that worker opens slots for it. Both compute it from the same list, so there is no lease
 * to renew or lose. Two processes whose lists differ for a second cost one command its slot.
 */
import { addAbortListener } from 'node:events'
import type { Context } from '../../shared/platform/context.ts'
import {
  announceEveryMs,
  inOrderFor,
  listWorkers,
  takesCalls,
  type WorkerEntry,
} from '../../shared/rpc/worker-registry.ts'

export interface SlotOwner {
  /**
   * By the list of workers of a second ago, which at worst costs one command a few milliseconds.
   * @param id a sandbox's, or the name of a warm pod
   */
  owns(id: string): boolean
  /**
   * Whether this is the newest worker that reaches the cluster, whose settings count for the pool. As of now, not of a
   * second ago. While Redis is away no worker is.
   */
  isNewest(): Promise<boolean>
}

export function followWorkers(
  worker: Pick<Context, 'redis' | 'settings' | 'log'> & { id: string },
  signal: AbortSignal,
): SlotOwner {
  const { id } = worker
  let workers: WorkerEntry[] = []
  const look = async () => {
    // While Redis is away, the last list is the best guess.
    workers = await listWorkers(worker).catch(() => workers)
    if (!signal.aborted) timer = setTimeout(look, announceEveryMs)
  }
  let timer: NodeJS.Timeout | undefined
  addAbortListener(signal, () => clearTimeout(timer))
  void look()
  return {
    owns: (owned) => inOrderFor(owned, workers.filter(takesCalls))[0]?.id === id,
    async isNewest() {
      const known = await listWorkers(worker).catch(() => [])
      const reached = known.filter((each) => each.driverProblem === null && takesCalls(each))
      return reached.every((each) => each.id <= id) && reached.some((each) => each.id === id)
    },
  }
}
