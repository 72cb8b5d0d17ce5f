/** The life of a sandbox's row, for the API and the workers alike. The row is the only truth. */
import type { DestroyReason } from './contract/sandboxes.ts'
import { Sandbox, type SandboxRow } from './database/entities.ts'
import type { Queries, Row } from './database/index.ts'

export type { SandboxRow }

/** Makes a typed row of what a statement returned. */
export const toSandbox = (db: Queries, row: Row): SandboxRow => db.em.map(Sandbox, row)

export async function findSandbox(db: Queries, id: string): Promise<SandboxRow | undefined> {
  const [row] = await db.query('select * from sandbox where id = ?', [id])
  return row && toSandbox(db, row)
}

/**
 * Ends a sandbox: its slot in the quota is free from here on, its pod follows.
 * A pod that failed before it was ready has failed to start.
 * @returns the row if this call ended it, undefined if it was ended before or never was
 */
export async function endSandbox(
  db: Queries,
  id: string,
  reason: DestroyReason,
  detail: string | null = null,
): Promise<SandboxRow | undefined> {
  const [row] = await db.query(
    `update sandbox
        set destroyed_at = greatest(sandlot_now(), coalesce(ready_at, created_at)),
            destroy_reason = case when ready_at is null and ? = 'pod_failed' then 'start_failed' else ? end,
            destroy_detail = ?
      where id = ? and destroyed_at is null
  returning *`,
    [reason, reason, detail, id],
  )
  return row && toSandbox(db, row)
}

/** Where a sandbox's environment is sealed for. */
export const envPlace = (sandboxId: string) => `sandbox-env ${sandboxId}`
