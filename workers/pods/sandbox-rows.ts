/** The steps of a sandbox's row that only workers take. Each does nothing once the sandbox was destroyed. */
import type { Queries } from '../../shared/data/database.ts'
import { podName } from '../../shared/data/ids.ts'
import { findSandbox, podOf, type SandboxRow, toSandbox } from '../../shared/data/sandboxes.ts'
import type { Pod, PodDeath } from '../drivers/driver.ts'

/**
 * Writes which pod is the sandbox's own.
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
 * Marks the sandbox ready. Billed time starts here.
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
  return row && toSandbox(row)
}

/** Writes that its warm pod was told whose it is. */
export async function markAssigned(db: Queries, sandboxId: string): Promise<void> {
  await db.query(
    `update sandbox set timings = timings || jsonb_build_object('assigned_ms', ${sinceAdmission})
      where id = ? and timings -> 'assigned_ms' is null`,
    [sandboxId],
  )
}

/**
 * Writes that something runs in its warm pod: from here on the pod's death is the sandbox's end.
 * @returns false when the sandbox has another pod by now, or none
 */
export async function markUsed(db: Queries, sandboxId: string, podUid: string): Promise<boolean> {
  const rows = await db.query(
    `update sandbox set claim = 'used' where id = ? and pod_uid = ? and ready_at is not null returning id`,
    [sandboxId, podUid],
  )
  return rows.length === 1
}

/**
 * Takes a warm pod in which nothing has run from a sandbox, which then gets a new one. Its start begins anew. The time
 * in its first pod stays billed: it was told already, and its month may be over.
 * @returns false when something has run, another worker did this, or the sandbox was destroyed
 */
export async function dropWarmPod(db: Queries, sandboxId: string, podUid: string): Promise<boolean> {
  const rows = await db.query(
    `update sandbox
        set claim = 'replaced', pod_name = ?, pod_uid = null, pod_since = sandlot_now(), ready_at = null,
            first_ready_at = ready_at, first_ended_at = greatest(sandlot_now(), ready_at),
            timings = jsonb_build_object('pod', 'replaced', 'dropped_ms', ${sinceAdmission})
      where id = ? and pod_uid = ? and claim = 'unused' and destroyed_at is null
  returning id`,
    [podName(sandboxId), sandboxId, podUid],
  )
  return rows.length === 1
}

/** When the start of its pod began. For a sandbox that is not ready, or was not before. */
export const startOf = ({ claim, pod_since, created_at }: SandboxRow): Date =>
  claim === 'replaced' && pod_since ? pod_since : created_at

/** The sandbox that owns a pod, if any. */
export async function findByPod(db: Queries, pod: Pod): Promise<SandboxRow | undefined> {
  const [row] = await db.query('select * from sandbox where pod_name = ? and reaped_at is null', [pod.name])
  if (row) return toSandbox(row)
  // A row of the previous version does not name its pod.
  const sandbox = pod.sandboxId === undefined ? undefined : await findSandbox(db, pod.sandboxId)
  return sandbox && podOf(sandbox).name === pod.name ? sandbox : undefined
}

/** Milliseconds by which a node's clock and PostgreSQL's may differ over the life of a sandbox. */
const clocksDifferMs = 5_000

/**
 * A pod's death as the end of its sandbox. Whether that counts as a failed start, the row decides (`endSandbox`). A
 * deadline that came before the cap was another than ours: somebody changed the pod.
 */
export function endOf(
  { reason, detail }: PodDeath,
  { expires_at }: Pick<SandboxRow, 'expires_at'>,
  now: Date,
) {
  const leftMs = expires_at.getTime() - now.getTime()
  if (reason === 'expired' && leftMs <= clocksDifferMs) return { reason, detail }
  const early = reason === 'expired' ? `: the pod ended ${Math.round(leftMs / 1000)} s before its cap` : ''
  return { reason: 'pod_failed' as const, detail: detail + early }
}

/** The pod of a destroyed sandbox was seen to be gone: nothing is left to do. */
export async function markReaped(db: Queries, sandboxId: string): Promise<void> {
  await db.query(
    `update sandbox set reaped_at = greatest(sandlot_now(), destroyed_at)
      where id = ? and destroyed_at is not null and reaped_at is null`,
    [sandboxId],
  )
}

/** Every sandbox that has or may have a pod: about as many rows as there are pods. */
export async function findUnreaped(db: Queries): Promise<SandboxRow[]> {
  const rows = await db.query('select * from sandbox where reaped_at is null order by expires_at')
  return rows.map((row) => toSandbox(row))
}

export async function readClock(db: Queries): Promise<Date> {
  const [row] = await db.query<{ now: string }>('select sandlot_now() as now')
  return new Date(row!.now)
}

const sinceAdmission = 'round(extract(epoch from sandlot_now() - created_at) * 1000)'
