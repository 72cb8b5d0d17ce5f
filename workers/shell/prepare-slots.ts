import { findSandbox, podOf } from '../../shared/data/sandboxes.ts'
import type { WorkerContext } from '../context.ts'

/** Opens the first slot of a sandbox when a notification says that it is ready, and drops those of a sandbox that ended. */
export function prepareSlots(worker: WorkerContext): void {
  const { notifications, db, driver, slotOwner, slots, log } = worker
  if (!driver.startsSlowly) return
  const look = async (sandboxId: string) => {
    if (!slots.has(sandboxId) && !slotOwner.owns(sandboxId)) return
    try {
      const sandbox = await findSandbox(db, sandboxId)
      if (!sandbox || sandbox.destroyed_at) return slots.drop(sandboxId)
      if (sandbox.ready_at && slotOwner.owns(sandboxId)) {
        slots.prepare(sandboxId, podOf(sandbox))
      }
    } catch (error) {
      log.debug({ err: error, sandbox_id: sandboxId }, 'no slot is opened ahead of time')
    }
  }
  notifications.onSandbox((sandboxId) => void look(sandboxId))
}
