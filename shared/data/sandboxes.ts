/**
 * Queries that read the table `sandbox`, the authoritative state of sandboxes. The queries that only workers use are in
 * `sandbox-pods.ts`. Only `sandbox-writes.ts` writes to the table.
 */
import { type RawBuilder, sql } from 'kysely'
import type { ListedState } from '../contract/sandboxes.ts'
import type { Queries } from './database.ts'
import type { Tables } from './entities/index.ts'
import { Sandbox, type SandboxRow } from './entities/sandbox.ts'
import { billedMs, endedAt, endReason, isEnded, now, type Page } from './sql.ts'
import { type Builder, first, hasRow, statement } from './statement.ts'

export type { SandboxRow }

/** All columns of the table. Statements list them explicitly, because a prepared `select *` fails after a migration. */
export const sandboxColumns = Object.keys(Sandbox.meta.properties) as (keyof Tables['sandbox'])[]

export const envSealContext = (sandboxId: string) => `sandbox-env ${sandboxId}`

export const podOf = (sandbox: Pick<SandboxRow, 'pod_name' | 'pod_uid'>) => ({
  name: sandbox.pod_name,
  uid: sandbox.pod_uid ?? undefined,
})

/** Returns the latest time to which the sandbox can be extended. Its pod ends at this time. */
export const maxExpiryOf = ({
  max_expires_at,
  expires_at,
}: Pick<SandboxRow, 'max_expires_at' | 'expires_at'>): Date => max_expires_at ?? expires_at

/** Returns the time at which the sandbox's current pod was requested. */
export const startOf = ({ claim, pod_since, created_at }: SandboxRow): Date =>
  claim === 'replaced' && pod_since ? pod_since : created_at

const byId = statement<{ id: string }>()('sandbox by id', (db, { id }) =>
  db.selectFrom('sandbox').select(sandboxColumns).where('id', '=', id),
)

export const findSandbox = (db: Queries, id: string) => first(db.run(byId, { id }))

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

/** Returns an account's active sandboxes and the seconds until each expires. The first to expire comes first. */
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
      .where('expires_at', '>', now)
      .forShare(),
)

/**
 * Locks an active sandbox's row, so that it cannot be destroyed until the transaction ends. Returns false if the
 * account has no active sandbox with this ID.
 */
export const lockActive = (transaction: Queries, of: { id: string; accountId: string }) =>
  hasRow(transaction.run(lockOneActive, of))

const everSince = sql<Date>`'-infinity'::timestamptz`
const clockNow = sql<Date>`clock.now`

/**
 * Columns that the API returns as they are. The pod and the environment, which can be large, are excluded.
 * `max_expires_at` limits how long a request can wait for the sandbox.
 */
const storedColumns = [
  'id',
  'name',
  'image',
  'metadata',
  'created_at',
  'expires_at',
  'max_expires_at',
  'ready_at',
  'destroy_detail',
  'timings',
] as const satisfies (keyof Tables['sandbox'])[]

/**
 * A sandbox as the API returns it. An expired sandbox counts as destroyed, even if no worker has destroyed it yet.
 * `billed_ms` is the billed time since its creation, in milliseconds.
 */
export type ShownSandbox = Pick<
  SandboxRow,
  (typeof storedColumns)[number] | 'destroyed_at' | 'destroy_reason'
> & { billed_ms: number }
export type SandboxOfAccount = ShownSandbox & { now: Date }

/** Selections for a {@link ShownSandbox}. @param until SQL for the time up to which it is billed */
export const shownColumns = (until: RawBuilder<Date>) => [
  ...storedColumns,
  endedAt.as('destroyed_at'),
  endReason.as('destroy_reason'),
  billedMs(everSince, until).as('billed_ms'),
]

const selectShown = (db: Builder) =>
  db
    .with(
      (cte) => cte('clock').materialized(),
      (db) => db.selectNoFrom(now.as('now')),
    )
    .selectFrom(['sandbox', 'clock'])
    .select(shownColumns(clockNow))

const own = statement<{ id: string; accountId: string }>()('own sandbox', (db, { id, accountId }) =>
  selectShown(db).select('clock.now').where('id', '=', id).where('account_id', '=', accountId),
)

/** Returns a sandbox, or undefined if it does not exist or belongs to another account. */
export const findSandboxOfAccount = (db: Queries, of: { id: string; accountId: string }) =>
  first(db.run(own, of))

/** Builds a separate statement for each state, so that each can use an index. */
const listIn = (state: ListedState) => ({
  first: list(state, false),
  next: list(state, true),
})

const list = (state: ListedState, isNext: boolean) =>
  statement<{ accountId: string; before: string; limit: number }>()(
    `list ${state}${isNext ? ' next' : ''}`,
    (db, { accountId, before, limit }) =>
      selectShown(db)
        .where('account_id', '=', accountId)
        .$if(state === 'active', (query) =>
          query.where('destroyed_at', 'is', null).where('expires_at', '>', clockNow),
        )
        .$if(state === 'destroyed', (query) => query.where(isEnded))
        .$if(isNext, (query) => query.where('id', '<', before))
        .orderBy('id', 'desc')
        .limit(limit),
  )
const lists = { active: listIn('active'), destroyed: listIn('destroyed'), all: listIn('all') }

/** Returns one page of the account's sandboxes, newest first. */
export const listSandboxesOfAccount = (
  db: Queries,
  accountId: string,
  { state, before, limit }: Page & { state: ListedState },
): Promise<ShownSandbox[]> =>
  db.run(before === null ? lists[state].first : lists[state].next, { accountId, before: before ?? '', limit })
