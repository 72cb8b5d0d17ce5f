/**
 * Determines each sandbox's slot owner, the worker that keeps slots open for the sandbox. The owner is the
 * first worker in the order of `shared/rpc/worker-registry.ts`. No lease is needed, because the API and all
 * workers compute the same order. While their copies of the registry differ, a command might find no slot.
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

export type SlotOwner = ReturnType<typeof followWorkers>

export function followWorkers(
  worker: Pick<Context, 'redis' | 'settings' | 'log'> & { id: string },
  signal: AbortSignal,
) {
  const { id } = worker
  let workers: WorkerEntry[] = []
  const refresh = async () => {
    workers = await listWorkers(worker).catch(() => workers)
    if (!signal.aborted) timer = setTimeout(refresh, announceEveryMs)
  }
  let timer: NodeJS.Timeout | undefined
  addAbortListener(signal, () => clearTimeout(timer))
  void refresh()
  return {
    /**
     * Whether this worker is the slot owner. The list of workers may be a second old, which at worst delays
     * one command by a few milliseconds.
     * @param owned ID of a sandbox, or name of a warm pod
     */
    owns: (owned: string): boolean => inOrderFor(owned, workers.filter(takesCalls))[0]?.id === id,
    /** Whether this is the newest worker that can reach the cluster. False while Redis is unavailable. */
    async isNewest(): Promise<boolean> {
      const current = await listWorkers(worker).catch(() => [])
      const healthy = current.filter((each) => each.driverProblem === null && takesCalls(each))
      return healthy.every((each) => each.id <= id) && healthy.some((each) => each.id === id)
    },
  }
}
