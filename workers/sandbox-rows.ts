/** The steps of a sandbox's row that workers alone take; each does nothing once it was destroyed. */
import type { Queries } from '../shared/database/index.ts'
import { type SandboxRow, toSandbox } from '../shared/sandboxes.ts'

/**
 * Writes down which pod is the sandbox's own.
 * @returns false when the sandbox was destroyed meanwhile, or is ready in another pod
 */
export async function adoptPod(db: Queries, sandboxId: string, podUid: string): Promise<boolean> {
  const rows = await db.query(
    `update sandbox
        set pod_uid = ?,
            timings = timings || jsonb_build_object('pod_created_ms', ${sinceAdmission})
      where id = ? and destroyed_at is null and (ready_at is null or pod_uid = ?)
  returning id`,
    [podUid, sandboxId, podUid],
  )
  return rows.length === 1
}

/**
 * Billed time starts here.
 * @returns the row, or undefined when the sandbox was destroyed meanwhile or has another pod
 */
export async function markReady(
  db: Queries,
  sandboxId: string,
  podUid: string,
): Promise<SandboxRow | undefined> {
  const [row] = await db.query(
    `update sandbox
        set ready_at = coalesce(ready_at, greatest(sandlot_now(), created_at)),
            timings = case when ready_at is null
              then timings || jsonb_build_object('ready_ms', ${sinceAdmission}) else timings end
      where id = ? and destroyed_at is null and pod_uid = ?
  returning *`,
    [sandboxId, podUid],
  )
  return row && toSandbox(db, row)
}

/** Nothing is left to do for a destroyed sandbox: its pod was seen to be gone. */
export async function markReaped(db: Queries, sandboxId: string): Promise<void> {
  await db.query(
    `update sandbox set reaped_at = greatest(sandlot_now(), destroyed_at)
      where id = ? and destroyed_at is not null and reaped_at is null`,
    [sandboxId],
  )
}

/** Every sandbox that has, or may have, a pod: as many rows as there are pods. */
export async function findUnreaped(db: Queries): Promise<SandboxRow[]> {
  const rows = await db.query('select * from sandbox where reaped_at is null order by expires_at')
  return rows.map((row) => toSandbox(db, row))
}

export async function readClock(db: Queries): Promise<Date> {
  const [row] = await db.query<{ now: string }>('select sandlot_now() as now')
  return new Date(row!.now)
}

const sinceAdmission = 'round(extract(epoch from sandlot_now() - created_at) * 1000)'
