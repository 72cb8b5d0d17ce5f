/** Sandboxes as their owner sees them. Every query names the account. */
import type { Sandbox } from '../../shared/contract/sandboxes.ts'
import type { Queries } from '../../shared/data/database.ts'
import * as rows from '../../shared/data/sandboxes.ts'
import { refuseMissing } from '../../shared/platform/sandbox-check.ts'

export type OwnSandbox = ReturnType<typeof toOwn>

/** @throws {Problem} `not_found`, also for a sandbox of another account */
export async function findOwn(db: Queries, accountId: string, id: string): Promise<OwnSandbox> {
  const found = await rows.findOwnSandbox(db, { id, accountId })
  if (!found) refuseMissing()
  return toOwn(found)
}

/** Newest first. */
export async function listOwn(db: Queries, accountId: string, page: rows.PageOf): Promise<OwnSandbox[]> {
  return (await rows.listOwnSandboxes(db, accountId, page)).map(toOwn)
}

/** A row, what was billed for it so far, and the time of that. */
const toOwn = ({ billed_ms: billedMs, now, ...row }: rows.OwnSandbox) => ({ row, billedMs, now })

/** What a client sees of a sandbox: nothing of its pod, and nothing sealed. */
export const present = ({ row, billedMs }: OwnSandbox): Sandbox => ({
  id: row.id,
  state: row.destroyed_at ? 'destroyed' : 'active',
  name: row.name ?? null,
  image: row.image,
  metadata: row.metadata,
  created_at: row.created_at.toISOString(),
  ready_at: row.ready_at?.toISOString() ?? null,
  expires_at: row.expires_at.toISOString(),
  destroyed_at: row.destroyed_at?.toISOString() ?? null,
  destroy_reason: row.destroy_reason ?? null,
  destroy_detail: row.destroy_detail ?? null,
  billed_seconds: billedMs / 1000,
  timings: row.timings,
})
