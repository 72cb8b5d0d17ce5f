import { findSandbox } from '../shared/sandboxes.ts'
import type { WorkerContext } from './context.ts'
import { endAndDelete } from './end-and-delete.ts'

/** Ends the row of a pod that died by itself, soon after it did; what is missed here the sweep finds. */
export function watchDeaths(worker: WorkerContext): void {
  worker.driver.watch(async (pod) => {
    try {
      const sandbox = await findSandbox(worker.db, pod.sandboxId)
      if (!sandbox || sandbox.destroyed_at || sandbox.pod_uid !== pod.uid) return
      await endAndDelete(worker, sandbox.id, pod.death.reason, pod.death.detail, () =>
        worker.reach('sweep or watch: the row is ended, the pod lives'),
      )
    } catch (error) {
      worker.log.warn({ err: error, sandbox_id: pod.sandboxId }, 'a dead pod is left to the sweep')
    }
  })
}
