import { sql } from 'kysely'
import type { Queries } from './database.ts'
import { type SandboxRow, sandboxColumns } from './sandboxes.ts'
import { isActivityDue, isIdle, now } from './sql.ts'
import { first, only, rows } from './statement.ts'

const byPod = first<{ name: string }>()('sandbox by pod', (db, { name }) =>
  db.selectFrom('sandbox').select(sandboxColumns).where('pod_name', '=', name).where('reaped_at', 'is', null),
)

export const findByPod = (db: Queries, pod: { name: string }): Promise<SandboxRow | undefined> =>
  byPod(db, { name: pod.name })

export const findUnreaped = rows()('unreaped sandboxes', (db) =>
  db.selectFrom('sandbox').select(sandboxColumns).where('reaped_at', 'is', null).orderBy('expires_at'),
)

const idle = rows()('idle sandboxes', (db) =>
  db.selectFrom('sandbox').select('id').where('reaped_at', 'is', null).where(isIdle),
)

export const findIdle = async (db: Queries): Promise<string[]> => (await idle(db)).map(({ id }) => id)

const starting = only()('starting sandboxes', (db) =>
  db
    .selectFrom('sandbox')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('ready_at', 'is', null)
    .where('destroyed_at', 'is', null),
)

export const countStarting = async (db: Queries) => (await starting(db)).count

export const countByState = rows()('states of sandboxes', (db) =>
  db
    .selectFrom('sandbox')
    .select(({ fn }) => [
      sql<'terminating' | 'starting' | 'ready'>`
        case when destroyed_at is not null then 'terminating' when ready_at is null then 'starting' else 'ready' end`.as(
        'state',
      ),
      fn.countAll<number>().as('count'),
    ])
    .where('reaped_at', 'is', null)
    .groupBy('state'),
)

const timeLeft = first<{ id: string }>()('sandbox with time left', (db, { id }) =>
  db
    .selectFrom('sandbox')
    .select(sandboxColumns)
    .select([
      sql<number>`(extract(epoch from expires_at - ${now}) * 1000)::double precision`.as('left_ms'),
      sql<number>`(extract(epoch from clock_timestamp()) * 1000)::double precision`.as('clock_ms'),
      isActivityDue.as('is_activity_due'),
    ])
    .where('id', '=', id),
)

export const findRemainingTime = (db: Queries, id: string) => timeLeft(db, { id })

const owned = only<{ name: string; uid: string | null }>()(
  'is a pod owned',
  (_, { name, uid }) => sql<{ owned: boolean }>`
  select exists (select from warm_pod where name = pod.name)
      or exists (select from sandbox
                  where pod_name = pod.name and reaped_at is null and destroyed_at is null
                    and coalesce(pod_uid = pod.uid, true)) as owned
    from (values (${name}::text, ${uid}::text)) as pod (name, uid)`,
)

/**
 * Returns whether the warm pool or an active sandbox owns a pod. A single statement reads both tables, so a
 * concurrent claim cannot hide the pod.
 * @param pod if it has no UID, every pod with its name matches
 */
export async function isPodOwned(db: Queries, { name, uid }: { name: string; uid?: string | undefined }) {
  return (await owned(db, { name, uid: uid ?? null })).owned
}

const busiest = rows<{ oldest: string; memoryMs: number; rushMs: number }>()(
  'busiest moments',
  (_, { oldest, memoryMs, rushMs }) => sql<{ image: string; busiest: number }>`
  select image, max(creates) as busiest
    from (select image, count(*) as creates
            from sandbox, (select ${now} as now) as clock
           where id > ${oldest} and created_at > now - ${memoryMs}::double precision * interval '1 millisecond'
           group by image, floor(extract(epoch from created_at) * 1000 / ${rushMs}::double precision)) as rush
   group by image`,
)

/**
 * Returns, for each image, the highest number of sandboxes created within an interval of `rushMs` during the
 * last `memoryMs` milliseconds. This number determines the size of the image's warm pool.
 * @param of.oldest an ID older than `memoryMs`, so that the query can use the primary key
 */
export async function findBusiest(
  db: Queries,
  of: { oldest: string; memoryMs: number; rushMs: number },
): Promise<Map<string, number>> {
  return new Map((await busiest(db, of)).map(({ image, busiest }) => [image, busiest]))
}
