/**
 * Statements for the `warm_pod` table. Deleting a row claims its pod: only the process that deleted the row
 * may assign or delete the pod.
 */
import { sql } from 'kysely'
import type { Queries } from './database.ts'
import type { WarmPodRow } from './entities.ts'
import { now, nowOnce } from './sql.ts'
import { first, hasRow, only, rows } from './statement.ts'

export type { WarmPodRow }

const columns = ['name', 'image', 'fingerprint', 'born_at', 'ends_at', 'ready_at', 'uid'] as const

/** Maximum age at which a warm pod can be claimed, because images and nodes change over time. */
export const warmPodMs = 60 * 60_000

export const findWarmPods = rows()('warm pods', (db) =>
  db.selectFrom('warm_pod').select(columns).orderBy('born_at'),
)

interface NewWarmPod {
  name: string
  image: string
  fingerprint: string
  lifeSeconds: number
}

export const addWarmPod = only<NewWarmPod>()('insert warm pod', (db, pod) =>
  db
    .insertInto('warm_pod')
    .columns(['name', 'image', 'fingerprint', 'born_at', 'ends_at'])
    .expression(
      sql`select ${pod.name}, ${pod.image}, ${pod.fingerprint}, now,
                 now + ${pod.lifeSeconds}::double precision * interval '1 second'
            from (select ${now} as now) as clock`,
    )
    .returning(columns),
)

const markReady = hasRow<{ name: string; uid: string }>()('warm pod is ready', (db, { name, uid }) =>
  db
    .updateTable('warm_pod')
    .set({ uid, ready_at: sql<Date>`coalesce(ready_at, greatest(${now}, born_at))` })
    .where('name', '=', name)
    .returning('name'),
)

export const markWarm = (db: Queries, name: string, uid: string) => markReady(db, { name, uid })

const remove = hasRow<{ name: string }>()('remove warm pod', (db, { name }) =>
  db.deleteFrom('warm_pod').where('name', '=', name).returning('name'),
)

/** Removes a warm pod from the pool. If this function returns true, the caller must delete the pod. */
export const removeWarmPod = (db: Queries, name: string) => remove(db, { name })

/**
 * Claims the oldest ready warm pod that may run for at least `seconds`. Skips rows locked by concurrent
 * claims.
 */
export const claimWarmPod = first<{ image: string; seconds: number }>()(
  'claim warm pod',
  (db, { image, seconds }) =>
    db
      .deleteFrom('warm_pod')
      .where('name', '=', (db) =>
        db
          .selectFrom('warm_pod')
          .select('name')
          .where('image', '=', image)
          .where('ready_at', 'is not', null)
          .where('born_at', '>', sql<Date>`${nowOnce} - ${sql.lit(warmPodMs)} * interval '1 millisecond'`)
          .where('ends_at', '>=', sql<Date>`${nowOnce} + ${seconds}::double precision * interval '1 second'`)
          .orderBy('born_at')
          .limit(sql.lit(1))
          .forUpdate()
          .skipLocked(),
      )
      .returning(['name', 'uid', 'born_at']),
)
