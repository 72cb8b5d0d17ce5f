import { findSandbox, podOf } from '../../shared/data/sandboxes.ts'
import type { Context } from '../../shared/platform/context.ts'
import type { Driver } from '../drivers/driver.ts'
import type { SlotOwner } from './slot-owner.ts'
import type { SlotPool } from './slot-pool.ts'

interface SlotsContext extends Pick<Context, 'db' | 'log' | 'notifications'> {
  driver: Driver
  slots: Pick<SlotPool, 'has' | 'drop' | 'prepare'>
  slotOwner: SlotOwner
}

/** Opens the first slot of a sandbox when a notification says that it is ready, and drops those of a sandbox that ended. */
export function prepareSlots({ notifications, db, driver, slotOwner, slots, log }: SlotsContext): void {
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
