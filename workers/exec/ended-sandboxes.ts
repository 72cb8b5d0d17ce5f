/** Ends commands with their sandbox: at once when a notification comes, otherwise within a minute. */
import { addAbortListener } from 'node:events'
import { findSandbox } from '../../shared/data/sandboxes.ts'
import { unknownEnd } from './command.ts'
import type { ExecContext } from './context.ts'

const lookEveryMs = 30_000

export function endCommandsWithSandboxes(
  { commands, notifications, db, log }: Pick<ExecContext, 'commands' | 'notifications' | 'db' | 'log'>,
  signal: AbortSignal,
): void {
  const look = async (sandboxId: string) => {
    if (commands.of(sandboxId).length === 0) return
    try {
      const sandbox = await findSandbox(db, sandboxId)
      if (sandbox && !sandbox.destroyed_at) return
      commands.endSandbox(sandboxId, unknownEnd('killed', sandbox?.destroy_reason ?? null))
    } catch (error) {
      log.debug({ err: error, sandbox_id: sandboxId }, 'whether a sandbox has ended is looked up again later')
    }
  }
  notifications.onSandbox((sandboxId) => void look(sandboxId))
  const timer = setInterval(() => {
    for (const sandboxId of commands.sandboxIds()) void look(sandboxId)
  }, lookEveryMs)
  addAbortListener(signal, () => clearInterval(timer))
}
