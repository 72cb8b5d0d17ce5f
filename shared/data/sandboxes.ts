/**
 * Reads the `sandbox` table. `sandbox-pods.ts` contains the queries that only workers use, and
 * `sandbox-writes.ts` the statements that modify the table.
 */
import { type RawBuilder, sql } from 'kysely'
import type { ListedState, ListOrder } from '../contract/sandboxes.ts'
import type { Queries } from './database.ts'
import { Sandbox, type SandboxRow, type Tables } from './entities.ts'
import { lastSandboxId, sandboxIdBefore } from './ids.ts'
import { billedMs, endedAt, endReason, isEnded, now } from './sql.ts'
import { type Builder, first, hasRow, rows } from './statement.ts'

export type { SandboxRow }

/**
 * All columns of the `sandbox` table. Statements list them, because a prepared `select *` fails after a
 * migration.
 */
export const sandboxColumns = Object.keys(Sandbox.meta.properties) as (keyof Tables['sandbox'])[]

export const envSealContext = (sandboxId: string) => `sandbox-env ${sandboxId}`

export const podOf = (sandbox: Pick<SandboxRow, 'pod_name' | 'pod_uid'>) => ({
  name: sandbox.pod_name,
  uid: sandbox.pod_uid ?? undefined,
})

/** Returns when the sandbox's current pod was requested. */
export const startOf = ({ claim, pod_since, created_at }: SandboxRow): Date =>
  claim === 'replaced' && pod_since ? pod_since : created_at

const byId = first<{ id: string }>()('sandbox by id', (db, { id }) =>
  db.selectFrom('sandbox').select(sandboxColumns).where('id', '=', id),
)

export const findSandbox = (db: Queries, id: string) => byId(db, { id })

const active = rows<{ accountId: string }>()('active sandboxes', (db, { accountId }) =>
  db
    .selectFrom('sandbox')
    .select([
      'id',
      'name',
      'image',
      'env_hash',
      'created_at',
      'expires_at',
      sql<number>`extract(epoch from expires_at - ${now})::double precision`.as('seconds_left'),
    ])
    .where('account_id', '=', accountId)
    .where('destroyed_at', 'is', null)
    .orderBy('expires_at'),
)

/** Returns the account's sandboxes that have not been destroyed, ordered by expiry. */
export const findActive = (db: Queries, accountId: string) => active(db, { accountId })

/** Locks an active sandbox's row until the transaction ends, so that the sandbox cannot be destroyed. */
export const lockActive = hasRow<{ id: string; accountId: string }>()(
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

const everSince = sql<Date>`'-infinity'::timestamptz`
const clockNow = sql<Date>`clock.now`

/**
 * Columns read for API responses, excluding the pod and the environment, which can be large. `max_expires_at`
 * is included because it limits how long a request can wait for the sandbox.
 */
const storedColumns = [
  'id',
  'name',
  'image',
  'metadata',
  'created_at',
  'expires_at',
  'max_expires_at',
  'idle_timeout_seconds',
  'ready_at',
  'destroy_detail',
  'timings',
] as const satisfies (keyof Tables['sandbox'])[]

/**
 * A sandbox as the API shows it. An expired sandbox counts as destroyed, even before a worker destroys it.
 */
export type ShownSandbox = Pick<
  SandboxRow,
  (typeof storedColumns)[number] | 'destroyed_at' | 'destroy_reason'
> & { billed_ms: number }
export type SandboxOfAccount = ShownSandbox & { now: Date }

/**
 * Returns the columns of a {@link ShownSandbox}.
 * @param until SQL for the time up to which the sandbox is billed
 */
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

export const findSandboxOfAccount = first<{ id: string; accountId: string }>()(
  'own sandbox',
  (db, { id, accountId }) =>
    selectShown(db).select('clock.now').where('id', '=', id).where('account_id', '=', accountId),
)

interface SandboxPage {
  state: ListedState
  name?: string | undefined
  image?: string | undefined
  /** The metadata must contain these entries. */
  metadata?: Record<string, string> | undefined
  /** Includes only sandboxes created after this RFC 3339 time. */
  created_after?: string | undefined
  order: ListOrder
  limit: number
  /** Last sandbox ID on the previous page. */
  cursor?: string | undefined
}

interface Listed {
  accountId: string
  state: ListedState
  name: string | null
  image: string | null
  metadata: string
  /** Key of the metadata entry for which the index is searched. */
  key: string
  value: string
  createdAfter: string
  after: string
  before: string
  limit: number
}

/**
 * Conditions of the list queries, one for each index that returns sandboxes in ID order. Each condition has
 * its own prepared statements, because PostgreSQL's generic plan for a statement ignores parameter values.
 *
 * A query uses only the most selective index. Few sandboxes are `active`, metadata is usually more selective
 * than a name, and a name is usually more selective than an image.
 */
const sources = {
  active: ({ accountId }: Listed) => sql<boolean>`
    account_id = ${accountId} and destroyed_at is null and expires_at > ${clockNow}`,
  metadata: ({ accountId, key, value }: Listed) => sql<boolean>`
    sandbox_label.account_id = ${accountId} and key = ${key} and value = ${value} and sandbox_id = sandbox.id`,
  name: ({ accountId, name }: Listed) => sql<boolean>`
    name is not null and array[account_id, name] = array[${accountId}::text, ${name}::text]`,
  image: ({ accountId, image }: Listed) => sql<boolean>`
    array[account_id, image] = array[${accountId}::text, ${image}::text]`,
  all: ({ accountId }: Listed) => sql<boolean>`account_id = ${accountId}`,
}
type Source = keyof typeof sources

const list = (source: Source, order: ListOrder) =>
  rows<Listed>()(`list ${source} ${order}`, (db, it) => {
    const isLabel = source === 'metadata'
    const id = sql.ref<string>(isLabel ? 'sandbox_label.sandbox_id' : 'sandbox.id')
    return selectShown(db)
      .$if(isLabel, (query) => query.crossJoin('sandbox_label'))
      .where(sources[source](it))
      .where(id, '>', it.after)
      .where(id, '<', it.before)
      .where(sql<boolean>`(${it.state}::text <> 'destroyed' or ${isEnded})`)
      .where(sql<boolean>`coalesce(name = ${it.name}::text, ${it.name}::text is null)`)
      .where(sql<boolean>`coalesce(image = ${it.image}::text, true)`)
      .where(sql<boolean>`metadata @> ${it.metadata}::jsonb`)
      .where(sql<boolean>`created_at > ${it.createdAfter}::timestamptz`)
      .orderBy(id, order)
      .limit(it.limit)
  })
const listBy = (source: Source) => ({ desc: list(source, 'desc'), asc: list(source, 'asc') })
const lists = {
  active: listBy('active'),
  metadata: listBy('metadata'),
  name: listBy('name'),
  image: listBy('image'),
  all: listBy('all'),
}

export function listSandboxesOfAccount(db: Queries, accountId: string, page: SandboxPage) {
  const { state, name, image, metadata = {}, created_after, order, limit, cursor } = page
  const [first] = Object.entries(metadata)
  const [key, value] = first ?? ['', '']
  const oldest = created_after === undefined ? '' : sandboxIdBefore(created_after)
  const isAscending = order === 'asc'
  return lists[sourceFor(page)][order](db, {
    accountId,
    state,
    name: name ?? null,
    image: image ?? null,
    metadata: JSON.stringify(metadata),
    key,
    value,
    createdAfter: created_after ?? '-infinity',
    after: isAscending && cursor !== undefined && cursor > oldest ? cursor : oldest,
    before: (isAscending ? undefined : cursor) ?? lastSandboxId,
    limit,
  })
}

function sourceFor({ state, name, image, metadata = {} }: SandboxPage): Source {
  if (state === 'active') return 'active'
  if (Object.keys(metadata).length > 0) return 'metadata'
  if (name !== undefined) return 'name'
  return image === undefined ? 'all' : 'image'
}
