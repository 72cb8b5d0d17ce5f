/** Waits for a sandbox until it runs, it has ended, or the time is up. */
import { limits } from '../../shared/contract/limits.ts'
import { mustRun, refuseDestroyed } from '../../shared/platform/sandbox-check.ts'
import type { App } from '../app.ts'
import { findOwn, type OwnSandbox } from './own.ts'

/** A notification tells of a change. In case it is lost, the row is read again this often. */
const lookAgainMs = 1_000

export interface WaitOptions {
  accountId: string
  sandboxId: string
  mostMs: number
  /** Ends the wait early. */
  signal: AbortSignal
}

/** Resolves with the sandbox when it is ready or destroyed, or as it is when the time is up. */
export async function awaitSettled({ context }: App, wait: WaitOptions): Promise<OwnSandbox> {
  const end = performance.now() + wait.mostMs
  for (;;) {
    const leftMs = end - performance.now()
    // Listens before it looks, so that no change falls between the two.
    const mostMs = Math.min(lookAgainMs, Math.max(0, leftMs))
    const change = context.notifications.next('sandbox', wait.sandboxId, mostMs)
    const found = await findOwn(context.db, wait.accountId, wait.sandboxId)
    const isSettled = found.row.ready_at ?? found.row.destroyed_at
    if (isSettled || leftMs <= 0 || wait.signal.aborted) return found
    await change
  }
}

/**
 * @returns a sandbox that commands can run in, and the milliseconds until its cap
 * @throws {Problem} `not_found`, `sandbox_destroyed`, or `sandbox_starting` after 10 s
 */
export async function awaitRunning(app: App, wait: Omit<WaitOptions, 'mostMs'>) {
  const { row, now } = await awaitSettled(app, { ...wait, mostMs: limits.startingWaitMs })
  const leftMs = row.expires_at.getTime() - now.getTime()
  // It is past its cap, and only the workers are late to end it.
  if (!row.destroyed_at && leftMs <= 0) refuseDestroyed({ ...row, destroy_reason: 'expired' })
  mustRun(row)
  return { row, leftMs }
}
