/**
 * Opens slots for sandboxes that become ready. When a sandbox is destroyed, closes its slots and ends its
 * commands; if the notification is lost, this happens within a minute.
 */
import { addAbortListener } from 'node:events'
import { findSandbox, podOf } from '../../shared/data/sandboxes.ts'
import type { SlotPool } from '../shell/slot-pool.ts'
import { withoutExitCode } from './command.ts'
import type { ExecContext } from './context.ts'

const checkEveryMs = 30_000

interface FollowContext
  extends Pick<ExecContext, 'commands' | 'db' | 'driver' | 'log' | 'notifications' | 'slotOwner'> {
  slots: Pick<SlotPool, 'drop' | 'has' | 'prepare'>
}

export function followSandboxes(
  { commands, db, driver, log, notifications, slotOwner, slots }: FollowContext,
  signal: AbortSignal,
): void {
  const check = async (sandboxId: string, isNews: boolean) => {
    const needsSlot = isNews && driver.startsSlowly && slotOwner.owns(sandboxId)
    const hasCommands = commands.of(sandboxId).length > 0
    if (!needsSlot && !hasCommands && !slots.has(sandboxId)) return
    try {
      const sandbox = await findSandbox(db, sandboxId)
      if (sandbox && !sandbox.destroyed_at) {
        if (needsSlot && sandbox.ready_at) slots.prepare(sandboxId, podOf(sandbox))
        return
      }
      slots.drop(sandboxId)
      if (hasCommands)
        commands.markDestroyed(sandboxId, withoutExitCode('killed', sandbox?.destroy_reason ?? null))
    } catch (error) {
      log.debug({ err: error, sandbox_id: sandboxId }, 'the row of a sandbox cannot be read; retrying')
    }
  }
  notifications.onSandbox((sandboxId) => void check(sandboxId, true))
  const timer = setInterval(() => {
    for (const sandboxId of commands.sandboxIds()) void check(sandboxId, false)
  }, checkEveryMs)
  addAbortListener(signal, () => clearInterval(timer))
}
