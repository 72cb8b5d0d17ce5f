import { findSandbox, podOf } from '../../shared/data/sandboxes.ts'
import { removePod } from '../pods/remove-pod.ts'
import { markReaped } from '../pods/sandbox-rows.ts'
import type { Processor } from './processor.ts'

/** Deletes the pod of a destroyed sandbox, and writes down that it is gone. */
export const deletePod: Processor<'deletePod'> = async ({ sandboxId }, worker) => {
  const { db, reach } = worker
  const sandbox = await findSandbox(db, sandboxId)
  if (!sandbox?.destroyed_at || sandbox.reaped_at) return
  reach('delete: before the pod is deleted')
  // By name only: whatever pod has this sandbox's name must go.
  await removePod(worker, { name: podOf(sandbox).name })
  reach('delete: the pod is deleted, the row does not say so')
  await markReaped(db, sandboxId)
}
