/**
 * All statements that modify the `sandbox` table. Only workers change the pod state, and a destroyed sandbox
 * never becomes ready again.
 */
import { type RawBuilder, sql } from 'kysely'
import type { DestroyReason } from '../contract/sandboxes.ts'
import type { Queries } from './database.ts'
import { podName } from './ids.ts'
import { type SandboxRow, sandboxColumns, shownColumns } from './sandboxes.ts'
import { isActivityDue, isIdle, now } from './sql.ts'
import { done, first, hasRow, rows } from './statement.ts'

interface NewSandbox {
  id: string
  accountId: string
  name: string | null
  image: string
  metadata: string
  sealedEnv: Buffer | null
  envHash: Buffer | null
  createdAt: Date
  expiresAt: Date
  /** The latest time to which `expiresAt` can be changed. */
  maxExpiresAt: Date
  idleTimeoutSeconds: number | null
  podName: string
  /** UID of the claimed warm pod. Null if a new pod must be created. */
  podUid: string | null
  podSince: Date | null
}

export const insertSandbox = done<NewSandbox>()(
  'insert sandbox',
  (_, it) => sql<never>`
  with row as (
         select ${it.createdAt}::timestamptz as created_at, ${it.podUid}::text as pod_uid),
       clock as materialized (select greatest(${now}, created_at) as now from row)
  insert into sandbox (id, account_id, name, image, metadata, sealed_env, env_hash, created_at, expires_at,
                       max_expires_at, idle_timeout_seconds, pod_name, pod_uid, pod_since, ready_at, claim, timings)
  select ${it.id}, ${it.accountId}, ${it.name}, ${it.image}, ${it.metadata}::jsonb, ${it.sealedEnv}::bytea,
         ${it.envHash}::bytea, created_at, ${it.expiresAt}::timestamptz, ${it.maxExpiresAt}::timestamptz,
         ${it.idleTimeoutSeconds}::int, ${it.podName}, pod_uid, ${it.podSince}::timestamptz,
         case when pod_uid is not null then now end,
         case when pod_uid is not null then 'unused' end,
         case when pod_uid is null then jsonb_build_object('pod', 'cold')
              else jsonb_build_object('pod', 'claimed', 'claimed_ms', ms, 'ready_ms', ms) end
    from row, clock, round(extract(epoch from now - created_at) * 1000) as ms`,
)

/**
 * When a sandbox ends: `expires_at` if the sandbox has expired, otherwise the current time. The end is never
 * before the start, even if PostgreSQL's clock was set back.
 */
const endedNow = sql<Date>`greatest(least(${now}, expires_at), coalesce(ready_at, created_at))`

const end = first<{ id: string; reason: DestroyReason; detail: string | null }>()(
  'end sandbox',
  (db, { id, reason, detail }) =>
    db
      .updateTable('sandbox')
      .set({
        destroyed_at: endedNow,
        destroy_reason: sql<DestroyReason>`
          case when expires_at <= ${now} then 'expired'
               when ready_at is null and ${reason}::text = 'pod_failed' then 'start_failed' else ${reason}::text end`,
        destroy_detail: sql<string | null>`case when expires_at > ${now} then ${detail}::text end`,
      })
      .where('id', '=', id)
      .where('destroyed_at', 'is', null)
      .where(({ or, eb }) =>
        or([eb('ready_at', 'is', null), sql<boolean>`${reason}::text <> 'start_failed'`]),
      )
      .returning(sandboxColumns),
)

/**
 * Destroys a sandbox, so that it no longer counts against the quota. The caller must delete the pod. A call
 * with `start_failed` does not destroy a ready sandbox. The stored reason can differ from `reason`. If the
 * sandbox has expired, it is `expired`, which clients may already have seen. Otherwise, `pod_failed` is
 * stored as `start_failed` if the sandbox never became ready.
 * @returns the row if this call destroyed the sandbox
 */
export const markDestroyed = (db: Queries, id: string, reason: DestroyReason, detail: string | null = null) =>
  end(db, { id, reason, detail })

const endOverdue = first<{ id: string }>()('end overdue sandbox', (db, { id }) =>
  db
    .updateTable('sandbox')
    .set({ destroyed_at: endedNow, destroy_reason: 'expired' })
    .where('id', '=', id)
    .where('destroyed_at', 'is', null)
    .where('expires_at', '<=', now)
    .returning(sandboxColumns),
)

/**
 * Destroys a sandbox if it has expired. It may have been extended since the caller read its row.
 * @returns the row if this call destroyed the sandbox
 */
export const markOverdue = (db: Queries, id: string) => endOverdue(db, { id })

const endIdle = first<{ id: string }>()('end idle sandbox', (db, { id }) =>
  db
    .updateTable('sandbox')
    .set({
      destroyed_at: endedNow,
      destroy_reason: sql<DestroyReason>`case when expires_at <= ${now} then 'expired' else 'idle' end`,
    })
    .where('id', '=', id)
    .where(isIdle)
    .returning(sandboxColumns),
)

/**
 * Destroys a sandbox if it is idle. A request that uses the sandbox writes to the same row ({@link
 * recordUse}), so only one of the two writes takes effect.
 * @returns the row if this call destroyed the sandbox
 */
export const markIdle = (db: Queries, id: string) => endIdle(db, { id })

const use = hasRow<{ id: string }>()('sandbox is used', (db, { id }) =>
  db
    .updateTable('sandbox')
    .set({ active_at: now })
    .where('id', '=', id)
    .where('destroyed_at', 'is', null)
    .returning('id'),
)

/** Records that a request is using the sandbox. Returns false if the sandbox is destroyed. */
export const recordUse = (db: Queries, id: string) => use(db, { id })

const activity = done<{ ids: string[] }>()('sandboxes are in use', (db, { ids }) =>
  db
    .with('due', (db) =>
      db
        .selectFrom('sandbox')
        .select('id')
        .where('id', '=', sql<string>`any(${ids}::text[])`)
        .where(isActivityDue)
        .forNoKeyUpdate()
        // A statement that waits for several rows could cause a deadlock.
        .skipLocked(),
    )
    .updateTable('sandbox')
    .from('due')
    .set({ active_at: now })
    .whereRef('sandbox.id', '=', 'due.id'),
)

/**
 * Records that sandboxes are in use. Skips rows that another transaction has locked, because workers repeat
 * this call every 10 s.
 */
export const recordActivity = (db: Queries, ids: string[]) => activity(db, { ids })

interface SandboxChanges {
  isNamed: boolean
  name: string | null
  /** New metadata as JSON. Null leaves the metadata unchanged. */
  metadata: string | null
  /** New TTL, counted from now. Null leaves the TTL unchanged. */
  ttlSeconds: number | null
  isIdleTimeoutSet: boolean
  idleTimeoutSeconds: number | null
  /** Maximum lifetime, counted from the sandbox's creation. */
  maxSeconds: number
}

/**
 * Changes an active sandbox. The clock is read after the row is locked, so a change and a concurrent expiry
 * never both take effect.
 * @returns undefined if the account has no active sandbox with this ID
 */
export const updateSandboxRow = first<SandboxChanges & { id: string; accountId: string }>()(
  'update sandbox',
  (db, it) =>
    db
      .with(
        (cte) => cte('locked').materialized(),
        (db) =>
          db
            .selectFrom('sandbox')
            .select('expires_at as until')
            .where('id', '=', it.id)
            .where('account_id', '=', it.accountId)
            .where('destroyed_at', 'is', null)
            .forNoKeyUpdate(),
      )
      .with(
        (cte) => cte('clock').materialized(),
        (db) => db.selectFrom('locked').select(['until', now.as('now')]),
      )
      .updateTable('sandbox')
      .from('clock')
      .set({
        name: sql<string | null>`case when ${it.isNamed}::boolean then ${it.name}::text else name end`,
        metadata: sql`coalesce(${it.metadata}::jsonb, metadata)`,
        expires_at: sql<Date>`
        case when ${it.ttlSeconds}::int is null then expires_at
             else least(clock.now + ${it.ttlSeconds}::int * interval '1 second', max_expires_at,
                        created_at + ${it.maxSeconds}::int * interval '1 second') end`,
        idle_timeout_seconds: sql<number | null>`
        case when ${it.isIdleTimeoutSet}::boolean then ${it.idleTimeoutSeconds}::int else idle_timeout_seconds end`,
        // Activity is not recorded without an idle timeout, so a new one counts from now.
        active_at: sql<Date | null>`
        case when ${it.idleTimeoutSeconds}::int is null then active_at else clock.now end`,
      })
      .where('id', '=', it.id)
      .where('destroyed_at', 'is', null)
      .whereRef('clock.until', '>', 'clock.now')
      .returning(shownColumns(sql<Date>`clock.now`)),
)

const endAllExpired = rows<{ accountId: string }>()('end expired sandboxes', (db, { accountId }) =>
  db
    .updateTable('sandbox')
    .set({ destroyed_at: endedNow, destroy_reason: 'expired' })
    .where('account_id', '=', accountId)
    .where('destroyed_at', 'is', null)
    .where('expires_at', '<=', now)
    .returning('id'),
)

/** Destroys the account's expired sandboxes, and returns their IDs. */
export async function expireSandboxes(db: Queries, accountId: string): Promise<string[]> {
  return (await endAllExpired(db, { accountId })).map(({ id }) => id)
}

type Timings = SandboxRow['timings']

const sinceAdmission = sql<number>`round(extract(epoch from ${now} - created_at) * 1000)`
const plusTiming = (name: string) =>
  sql<Timings>`timings || jsonb_build_object(${sql.lit(name)}, ${sinceAdmission})`

interface OnePod {
  id: string
  podUid: string
}

const adopt = hasRow<OnePod>()('adopt pod', (db, { id, podUid }) =>
  db
    .updateTable('sandbox')
    .set({ pod_uid: podUid, timings: plusTiming('pod_created_ms') })
    .where('id', '=', id)
    .where('destroyed_at', 'is', null)
    .where(({ or, eb }) => or([eb('ready_at', 'is', null), eb('pod_uid', '=', podUid)]))
    .returning('id'),
)

/**
 * Records the UID of a sandbox's pod.
 * @returns false if the sandbox is destroyed, or is ready in a different pod
 */
export const adoptPod = (db: Queries, id: string, podUid: string) => adopt(db, { id, podUid })

const ready = first<OnePod>()('sandbox is ready', (db, { id, podUid }) =>
  db
    .updateTable('sandbox')
    .set({
      ready_at: sql<Date>`coalesce(ready_at, greatest(${now}, created_at))`,
      timings: sql<Timings>`case when ready_at is null then ${plusTiming('ready_ms')} else timings end`,
    })
    .where('id', '=', id)
    .where('destroyed_at', 'is', null)
    .where('expires_at', '>', now)
    .where('pod_uid', '=', podUid)
    .returning(sandboxColumns),
)

/**
 * Marks a sandbox as ready, which starts billing. Returns undefined if the sandbox is destroyed, has expired
 * or has a different pod.
 */
export const markReady = (db: Queries, id: string, podUid: string) => ready(db, { id, podUid })

const assigned = done<{ id: string }>()('warm pod is assigned', (db, { id }) =>
  db
    .updateTable('sandbox')
    .set({ timings: plusTiming('assigned_ms') })
    .where('id', '=', id)
    .where(sql<boolean>`timings -> 'assigned_ms' is null`),
)

export const markAssigned = (db: Queries, id: string) => assigned(db, { id })

const used = hasRow<OnePod>()('warm pod is used', (db, { id, podUid }) =>
  db
    .updateTable('sandbox')
    .set({ claim: 'used' })
    .where('id', '=', id)
    .where('pod_uid', '=', podUid)
    .where('ready_at', 'is not', null)
    .returning('id'),
)

/**
 * Marks a claimed warm pod as used. If the pod dies later, the sandbox ends and does not start again in a new
 * pod. Returns false if the sandbox has another pod or none.
 */
export const markUsed = (db: Queries, id: string, podUid: string) => used(db, { id, podUid })

const drop = hasRow<OnePod & { newName: string }>()('drop warm pod', (db, { id, podUid, newName }) =>
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
 * Detaches an unused warm pod, so that its sandbox starts again in a new pod. The time in the first pod is
 * still billed, because clients have already seen it in their usage.
 * @returns false if the pod was used or already detached, or if the sandbox is destroyed
 */
export const dropWarmPod = (db: Queries, id: string, podUid: string) =>
  drop(db, { id, podUid, newName: podName(id) })

const reaped = done<{ id: string }>()('pod is gone', (db, { id }) =>
  db
    .updateTable('sandbox')
    .set({ reaped_at: sql<Date>`greatest(${now}, destroyed_at)` })
    .where('id', '=', id)
    .where('destroyed_at', 'is not', null)
    .where('reaped_at', 'is', null),
)

export const markReaped = (db: Queries, id: string) => reaped(db, { id })

/** Deletes the metadata of destroyed sandboxes whose IDs sort before `before`. IDs sort by creation time. */
export const forgetMetadata = done<{ before: string; limit: number }>()(
  'forget metadata',
  (db, { before, limit }) =>
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

/**
 * Returns SQL that deletes sandboxes. The SQL returns the columns from which the outer statement computes the
 * usage.
 */
export const deleteSandboxes = (ids: string[]) => sql`(
  delete from sandbox where id = any(${ids}::text[])
  returning account_id, ready_at, destroyed_at, expires_at, first_ready_at, first_ended_at)`

/**
 * Returns SQL that deletes all sandboxes of accounts.
 * @param ids subquery that returns the IDs of the accounts that the outer statement deletes
 */
export const deleteSandboxesOf = (ids: RawBuilder<unknown>) =>
  sql<Record<string, never>>`(delete from sandbox where account_id in (${ids}))`
