/**
 * Every statement that changes the table `sandbox`: admission, destruction, deletion, and the state of its pod. Only
 * workers change that state, which does nothing for a destroyed sandbox.
 */
import { type RawBuilder, sql } from 'kysely'
import type { DestroyReason } from '../contract/sandboxes.ts'
import type { Queries } from './database.ts'
import { podName } from './ids.ts'
import { type SandboxRow, sandboxColumns } from './sandboxes.ts'
import { now } from './sql.ts'
import { done, first, hasRow, statement } from './statement.ts'

export interface NewSandbox {
  id: string
  accountId: string
  name: string | null
  image: string
  /** As JSON. */
  metadata: string
  sealedEnv: Buffer | null
  createdAt: Date
  expiresAt: Date
  podName: string
  /** The uid of its warm pod; null if a pod has to be created. */
  podUid: string | null
  podSince: Date | null
}

const insert = statement<NewSandbox>()(
  'insert sandbox',
  (_, it) => sql<never>`
  with row as (
         select ${it.createdAt}::timestamptz as created_at, ${it.podUid}::text as pod_uid),
       clock as materialized (select greatest(${now}, created_at) as now from row)
  insert into sandbox (id, account_id, name, image, metadata, sealed_env, created_at, expires_at, pod_name, pod_uid,
                       pod_since, ready_at, claim, timings)
  select ${it.id}, ${it.accountId}, ${it.name}, ${it.image}, ${it.metadata}::jsonb, ${it.sealedEnv}::bytea, created_at,
         ${it.expiresAt}::timestamptz, ${it.podName}, pod_uid, ${it.podSince}::timestamptz,
         case when pod_uid is not null then now end,
         case when pod_uid is not null then 'unused' end,
         case when pod_uid is null then jsonb_build_object('pod', 'cold')
              else jsonb_build_object('pod', 'claimed', 'claimed_ms', ms, 'ready_ms', ms) end
    from row, clock, round(extract(epoch from now - created_at) * 1000) as ms`,
)

export const insertSandbox = (db: Queries, sandbox: NewSandbox) => done(db.run(insert, sandbox))

/** Never before the start, even if PostgreSQL's clock was set back. */
const endedNow = sql<Date>`greatest(${now}, coalesce(ready_at, created_at))`

const end = statement<{ id: string; reason: DestroyReason; detail: string | null }>()(
  'end sandbox',
  (db, { id, reason, detail }) =>
    db
      .updateTable('sandbox')
      .set({
        destroyed_at: endedNow,
        destroy_reason: sql<DestroyReason>`
          case when ready_at is null and ${reason}::text = 'pod_failed' then 'start_failed' else ${reason}::text end`,
        destroy_detail: detail,
      })
      .where('id', '=', id)
      .where('destroyed_at', 'is', null)
      .where(({ or, eb }) =>
        or([eb('ready_at', 'is', null), sql<boolean>`${reason}::text <> 'start_failed'`]),
      )
      .returning(sandboxColumns),
)

/**
 * Ends a sandbox, which then no longer counts against the quota. The caller deletes its pod. Before the sandbox is
 * ready, `pod_failed` becomes `start_failed`. `start_failed` does not end a ready sandbox.
 * @returns the row if this call ended the sandbox
 */
export const markDestroyed = (db: Queries, id: string, reason: DestroyReason, detail: string | null = null) =>
  first(db.run(end, { id, reason, detail }))

const endAllExpired = statement<{ accountId: string }>()('end expired sandboxes', (db, { accountId }) =>
  db
    .updateTable('sandbox')
    .set({ destroyed_at: endedNow, destroy_reason: 'expired' })
    .where('account_id', '=', accountId)
    .where('destroyed_at', 'is', null)
    .where('expires_at', '<=', now)
    .returning('id'),
)

/** Ends an account's expired sandboxes. Returns their ids. */
export async function expireSandboxes(db: Queries, accountId: string): Promise<string[]> {
  return (await db.run(endAllExpired, { accountId })).map(({ id }) => id)
}

type Timings = SandboxRow['timings']

const sinceAdmission = sql<number>`round(extract(epoch from ${now} - created_at) * 1000)`
const plusTiming = (name: string) =>
  sql<Timings>`timings || jsonb_build_object(${sql.lit(name)}, ${sinceAdmission})`

interface OnePod {
  id: string
  podUid: string
}

const adopt = statement<OnePod>()('adopt pod', (db, { id, podUid }) =>
  db
    .updateTable('sandbox')
    .set({ pod_uid: podUid, timings: plusTiming('pod_created_ms') })
    .where('id', '=', id)
    .where('destroyed_at', 'is', null)
    .where(({ or, eb }) => or([eb('ready_at', 'is', null), eb('pod_uid', '=', podUid)]))
    .returning('id'),
)

/**
 * Stores the pod of a sandbox.
 * @returns false if the sandbox is destroyed, or ready in another pod
 */
export const adoptPod = (db: Queries, id: string, podUid: string) => hasRow(db.run(adopt, { id, podUid }))

const ready = statement<OnePod>()('sandbox is ready', (db, { id, podUid }) =>
  db
    .updateTable('sandbox')
    .set({
      ready_at: sql<Date>`coalesce(ready_at, greatest(${now}, created_at))`,
      timings: sql<Timings>`case when ready_at is null then ${plusTiming('ready_ms')} else timings end`,
    })
    .where('id', '=', id)
    .where('destroyed_at', 'is', null)
    .where('pod_uid', '=', podUid)
    .returning(sandboxColumns),
)

/**
 * Marks the sandbox as ready, which starts its billed time.
 * @returns the row, or undefined if the sandbox is destroyed or has another pod
 */
export const markReady = (db: Queries, id: string, podUid: string) => first(db.run(ready, { id, podUid }))

const assigned = statement<{ id: string }>()('warm pod is assigned', (db, { id }) =>
  db
    .updateTable('sandbox')
    .set({ timings: plusTiming('assigned_ms') })
    .where('id', '=', id)
    .where(sql<boolean>`timings -> 'assigned_ms' is null`),
)

export const markAssigned = (db: Queries, id: string) => done(db.run(assigned, { id }))

const used = statement<OnePod>()('warm pod is used', (db, { id, podUid }) =>
  db
    .updateTable('sandbox')
    .set({ claim: 'used' })
    .where('id', '=', id)
    .where('pod_uid', '=', podUid)
    .where('ready_at', 'is not', null)
    .returning('id'),
)

/**
 * Marks the warm pod of a sandbox as used. From then on, the sandbox ends if the pod dies.
 * @returns false if the sandbox has another pod or none
 */
export const markUsed = (db: Queries, id: string, podUid: string) => hasRow(db.run(used, { id, podUid }))

const drop = statement<OnePod & { newName: string }>()('drop warm pod', (db, { id, podUid, newName }) =>
  db
    .updateTable('sandbox')
    .set({
      claim: 'replaced',
      pod_name: newName,
      pod_uid: null,
      pod_since: now,
      ready_at: null,
      first_ready_at: sql<Date>`ready_at`,
      first_ended_at: sql<Date>`greatest(${now}, ready_at)`,
      timings: sql<Timings>`jsonb_build_object('pod', 'replaced', 'dropped_ms', ${sinceAdmission})`,
    })
    .where('id', '=', id)
    .where('pod_uid', '=', podUid)
    .where('claim', '=', 'unused')
    .where('destroyed_at', 'is', null)
    .returning('id'),
)

/**
 * Removes an unused warm pod from a sandbox, which then starts again in a new pod. The time in the first pod remains
 * billed, because clients have seen it and its month may be over.
 * @returns false if the pod was used or already removed, or the sandbox is destroyed
 */
export const dropWarmPod = (db: Queries, id: string, podUid: string) =>
  hasRow(db.run(drop, { id, podUid, newName: podName(id) }))

const reaped = statement<{ id: string }>()('pod is gone', (db, { id }) =>
  db
    .updateTable('sandbox')
    .set({ reaped_at: sql<Date>`greatest(${now}, destroyed_at)` })
    .where('id', '=', id)
    .where('destroyed_at', 'is not', null)
    .where('reaped_at', 'is', null),
)

/** Records that the pod of a destroyed sandbox is gone. */
export const markReaped = (db: Queries, id: string) => done(db.run(reaped, { id }))

const forget = statement<{ before: string; limit: number }>()('forget metadata', (db, { before, limit }) =>
  db
    .updateTable('sandbox')
    .set({ metadata: sql`'{}'::jsonb` })
    .where('id', 'in', (db) =>
      db
        .selectFrom('sandbox')
        .select('id')
        .where('id', '<', before)
        .where('metadata', '<>', sql<Record<string, string>>`'{}'`)
        .where('destroyed_at', 'is not', null)
        .orderBy('id')
        .limit(limit),
    ),
)

/** Deletes only the metadata, because usage is computed from the rest of the row. @param of.before an id */
export const forgetMetadata = (db: Queries, of: { before: string; limit: number }) => done(db.run(forget, of))

/** A CTE of the statement that adds their usage to the sums by day. */
export const deleteSandboxes = (ids: string[]) => sql`(
  delete from sandbox where id = any(${ids}::text[])
  returning account_id, ready_at, destroyed_at, expires_at, first_ready_at, first_ended_at)`

/** A CTE of the statement that deletes accounts. @param ids a query for their ids */
export const deleteSandboxesOf = (ids: RawBuilder<unknown>) =>
  sql<Record<string, never>>`(delete from sandbox where account_id in (${ids}))`
