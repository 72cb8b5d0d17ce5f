/** The rows of warm pods. Whoever deletes a row has its pod: a create, for its sandbox, or a worker, to delete it. */
import type { Queries, Row } from '../../shared/data/database.ts'

export interface WarmPod {
  name: string
  image: string
  fingerprint: string
  born_at: Date
  ends_at: Date
  /** Absent while it starts, like its uid. */
  ready_at: Date | null
  uid: string | null
}

export async function findWarmPods(db: Queries): Promise<WarmPod[]> {
  const rows = await db.query('select * from warm_pod order by born_at')
  return rows.map(toWarmPod)
}

function toWarmPod(row: Row): WarmPod {
  const time = (text: unknown) => (text === null ? null : new Date(text as string))
  return {
    ...(row as unknown as WarmPod),
    born_at: time(row.born_at)!,
    ends_at: time(row.ends_at)!,
    ready_at: time(row.ready_at),
  }
}

/** @param lifeSeconds from the pod's start to its deadline */
export async function addWarmPod(
  db: Queries,
  pod: Pick<WarmPod, 'name' | 'image' | 'fingerprint'>,
  lifeSeconds: number,
): Promise<WarmPod> {
  const [row] = await db.query(
    `insert into warm_pod (name, image, fingerprint, born_at, ends_at)
     select ?, ?, ?, now, now + ? * interval '1 second' from (select sandlot_now() as now) as clock
  returning *`,
    [pod.name, pod.image, pod.fingerprint, lifeSeconds],
  )
  return toWarmPod(row!)
}

/** From here on the pod can be claimed. @returns false when its row was deleted meanwhile */
export async function markWarm(db: Queries, name: string, uid: string): Promise<boolean> {
  const rows = await db.query(
    `update warm_pod set uid = ?, ready_at = coalesce(ready_at, greatest(sandlot_now(), born_at))
      where name = ? returning name`,
    [uid, name],
  )
  return rows.length === 1
}

/** @returns whether this call deleted the row: then the pod is nobody's, and must be deleted */
export async function removeWarmPod(db: Queries, name: string): Promise<boolean> {
  const rows = await db.query('delete from warm_pod where name = ? returning name', [name])
  return rows.length === 1
}

/** How many sandboxes are starting. */
export async function countStarting(db: Queries): Promise<number> {
  const [row] = await db.query<{ count: string }>(
    'select count(*) from sandbox where ready_at is null and destroyed_at is null',
  )
  return Number(row!.count)
}
