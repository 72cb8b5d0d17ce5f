/**
 * The table `sandbox`, the only truth about each: its admission and its end, and who may see it. `sandbox-pods.ts` writes
 * the steps of its pod, `usage.ts` deletes what it has added up, and `accounts.ts` what goes with its account.
 */
import { sql } from 'kysely'
import type { DestroyReason, ListedState } from '../contract/sandboxes.ts'
import type { Queries } from './database.ts'
import type { Tables } from './entities/index.ts'
import { Sandbox, type SandboxRow } from './entities/sandbox.ts'
import { podName } from './ids.ts'
import { now } from './sql.ts'
import { type Builder, statement } from './statement.ts'
import { billedMs } from './usage.ts'

export type { SandboxRow }

/** All columns, as statements must name them. */
export const sandboxColumns = Object.keys(Sandbox.meta.properties) as (keyof Tables['sandbox'])[]

/** Where a sandbox's environment is sealed for. */
export const envSealContext = (sandboxId: string) => `sandbox-env ${sandboxId}`

/** The pod of a sandbox, as its row says. */
export const podOf = (sandbox: Pick<SandboxRow, 'id' | 'pod_name' | 'pod_uid'>) => ({
  name: sandbox.pod_name ?? podName(sandbox.id),
  uid: sandbox.pod_uid ?? undefined,
})

/** When the start of its pod began. For a sandbox that is not ready, or was not before. */
export const startOf = ({ claim, pod_since, created_at }: SandboxRow): Date =>
  claim === 'replaced' && pod_since ? pod_since : created_at

const byId = statement<{ id: string }>()('sandbox by id', (db, { id }) =>
  db.selectFrom('sandbox').select(sandboxColumns).where('id', '=', id),
)

export async function findSandbox(db: Queries, id: string): Promise<SandboxRow | undefined> {
  const [row] = await db.run(byId, { id })
  return row
}

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
  /** Of the warm pod that it gets; null for one whose pod is still to be made. */
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

/** One with a warm pod is ready at once. */
export async function insertSandbox(db: Queries, sandbox: NewSandbox): Promise<void> {
  await db.run(insert, sandbox)
}

/** Never before it began, whatever the clock of PostgreSQL did meanwhile. */
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
 * Ends a sandbox: it no longer counts against the quota, and its pod is to be deleted. A pod that fails before the
 * sandbox was ready has failed to start; if the sandbox has become ready meanwhile, it has not.
 * @returns the row if this call ended it, undefined if it was ended before or never was
 */
export async function endSandbox(
  db: Queries,
  id: string,
  reason: DestroyReason,
  detail: string | null = null,
): Promise<SandboxRow | undefined> {
  const [row] = await db.run(end, { id, reason, detail })
  return row
}

const endAllExpired = statement<{ accountId: string }>()('end expired sandboxes', (db, { accountId }) =>
  db
    .updateTable('sandbox')
    .set({ destroyed_at: endedNow, destroy_reason: 'expired' })
    .where('account_id', '=', accountId)
    .where('destroyed_at', 'is', null)
    .where('expires_at', '<=', now)
    .returning('id'),
)

/** Ends an account's sandboxes that are past their cap. @returns their ids */
export async function endExpired(db: Queries, accountId: string): Promise<string[]> {
  return (await db.run(endAllExpired, { accountId })).map(({ id }) => id)
}

const active = statement<{ accountId: string }>()('active sandboxes', (db, { accountId }) =>
  db
    .selectFrom('sandbox')
    .select([
      'id',
      'name',
      'created_at',
      'expires_at',
      sql<number>`extract(epoch from expires_at - ${now})::double precision`.as('seconds_left'),
    ])
    .where('account_id', '=', accountId)
    .where('destroyed_at', 'is', null)
    .orderBy('expires_at'),
)

/** What counts against the quota of an account, with the seconds until its cap, the next to end first. */
export const findActive = (db: Queries, accountId: string) => db.run(active, { accountId })

const lockOneActive = statement<{ id: string; accountId: string }>()(
  'lock active sandbox',
  (db, { id, accountId }) =>
    db
      .selectFrom('sandbox')
      .select('id')
      .where('id', '=', id)
      .where('account_id', '=', accountId)
      .where('destroyed_at', 'is', null)
      .forShare(),
)

/** Nobody ends it until the transaction ends. @returns false when the account has no such active sandbox */
export async function lockActive(
  transaction: Queries,
  of: { id: string; accountId: string },
): Promise<boolean> {
  return (await transaction.run(lockOneActive, of)).length === 1
}

const everSince = sql<Date>`'-infinity'::timestamptz`
const clockNow = sql<Date>`clock.now`

/** A row, what was billed for it over its whole life, in whichever months, and the time of that. */
export type OwnSandbox = SandboxRow & { billed_ms: number; now: Date }

const selectBilled = (db: Builder) =>
  db
    .with(
      (cte) => cte('clock').materialized(),
      (db) => db.selectNoFrom(now.as('now')),
    )
    .selectFrom(['sandbox', 'clock'])
    .select(sandboxColumns)
    .select(['clock.now', billedMs(everSince, clockNow).as('billed_ms')])

const own = statement<{ id: string; accountId: string }>()('own sandbox', (db, { id, accountId }) =>
  selectBilled(db).where('id', '=', id).where('account_id', '=', accountId),
)

/** @returns undefined also for a sandbox of another account */
export async function findOwnSandbox(
  db: Queries,
  of: { id: string; accountId: string },
): Promise<OwnSandbox | undefined> {
  const [row] = await db.run(own, of)
  return row
}

/** A statement for each state, so that each of them is served by an index. */
const listIn = (state: ListedState) => ({
  first: list(state, false),
  next: list(state, true),
})

const list = (state: ListedState, isNext: boolean) =>
  statement<{ accountId: string; before: string; limit: number }>()(
    `list ${state}${isNext ? ' next' : ''}`,
    (db, { accountId, before, limit }) =>
      selectBilled(db)
        .where('account_id', '=', accountId)
        .$if(state === 'active', (query) => query.where('destroyed_at', 'is', null))
        .$if(state === 'destroyed', (query) => query.where('destroyed_at', 'is not', null))
        .$if(isNext, (query) => query.where('id', '<', before))
        .orderBy('id', 'desc')
        .limit(limit),
  )
const lists = { active: listIn('active'), destroyed: listIn('destroyed'), all: listIn('all') }

export interface PageOf {
  state: ListedState
  limit: number
  /** The id that the previous page ended with. */
  before: string | null
}

/** Newest first. */
export const listOwnSandboxes = (
  db: Queries,
  accountId: string,
  { state, before, limit }: PageOf,
): Promise<OwnSandbox[]> =>
  db.run(before === null ? lists[state].first : lists[state].next, { accountId, before: before ?? '', limit })

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

/** The rest of a sandbox's row stays for long: its usage is computed from it. @param of.before an id */
export async function forgetMetadata(db: Queries, of: { before: string; limit: number }): Promise<void> {
  await db.run(forget, of)
}
