/** Loads sandboxes. Every query is restricted to the caller's account. */
import { limits } from '../../shared/contract/limits.ts'
import type { Sandbox } from '../../shared/contract/sandboxes.ts'
import type { Queries } from '../../shared/data/database.ts'
import {
  findSandboxOfAccount,
  type SandboxOfAccount,
  type ShownSandbox,
} from '../../shared/data/sandboxes.ts'
import { assertRunning, refuseMissing } from '../../shared/platform/sandbox-check.ts'
import type { App } from '../app.ts'

/** @throws {Problem} `not_found` if the sandbox does not exist or belongs to another account */
export async function loadSandbox(db: Queries, accountId: string, id: string): Promise<SandboxOfAccount> {
  return (await findSandboxOfAccount(db, { id, accountId })) ?? refuseMissing()
}

const rereadMs = 1_000

interface WaitOptions {
  accountId: string
  sandboxId: string
  maxMs: number
  signal: AbortSignal
}

export async function awaitSettled({ context }: App, wait: WaitOptions): Promise<SandboxOfAccount> {
  const end = performance.now() + wait.maxMs
  let change: Promise<void> | undefined
  for (;;) {
    const found = await loadSandbox(context.db, wait.accountId, wait.sandboxId)
    const leftMs = end - performance.now()
    const isSettled = found.ready_at ?? found.destroyed_at
    if (isSettled || leftMs <= 0 || wait.signal.aborted) return found
    await change
    // Subscribes before the next read, so that no change is missed.
    const waitMs = Math.min(rereadMs, leftMs)
    change = context.notifications.next('sandbox', wait.sandboxId, waitMs, wait.signal)
  }
}

/**
 * Waits until commands can run in the sandbox.
 * @returns the sandbox, and the maximum time until it expires, including any extension, in milliseconds
 * @throws {Problem} `not_found`, `sandbox_destroyed`, or `sandbox_starting` if it is not ready within 10 s
 */
export async function awaitRunning(app: App, wait: Omit<WaitOptions, 'maxMs'>) {
  const sandbox = await awaitSettled(app, { ...wait, maxMs: limits.startingWaitMs })
  assertRunning(sandbox)
  return { sandbox, leftMs: sandbox.max_expires_at.getTime() - sandbox.now.getTime() }
}

export const present = (row: ShownSandbox): Sandbox => ({
  id: row.id,
  state: row.destroyed_at ? 'destroyed' : 'active',
  name: row.name ?? null,
  image: row.image,
  metadata: row.metadata,
  created_at: row.created_at.toISOString(),
  ready_at: row.ready_at?.toISOString() ?? null,
  expires_at: row.expires_at.toISOString(),
  idle_timeout_seconds: row.idle_timeout_seconds ?? null,
  destroyed_at: row.destroyed_at?.toISOString() ?? null,
  destroy_reason: row.destroy_reason ?? null,
  destroy_detail: row.destroy_detail ?? null,
  billed_seconds: row.billed_ms / 1000,
  timings: row.timings,
})
