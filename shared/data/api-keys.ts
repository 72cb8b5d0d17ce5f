/** Statements for the `api_key` table. Only this file writes to the table. */
import { expressionBuilder, sql } from 'kysely'
import type { Scope } from '../contract/endpoint.ts'
import type { Queries } from './database.ts'
import type { ApiKeyRow as Row, Tables } from './entities.ts'
import { isOlder, now, type Page } from './sql.ts'
import { done, first, hasRow, only, rows } from './statement.ts'

const shown = ['id', 'name', 'scope', 'last_four', 'created_at', 'expires_at', 'last_used_at'] as const

export type ApiKeyRow = Pick<Row, (typeof shown)[number]>

const key = expressionBuilder<Tables, 'api_key'>()

const isLive = key.and([
  key('revoked_at', 'is', null),
  key.or([key('expires_at', 'is', null), key('expires_at', '>', now)]),
])

/** Original lifetime of a key. Null if the key was created without an expiry. */
const firstLifetime = sql<string | null>`case when is_replaced then lifetime else expires_at - created_at end`

const byHash = first<{ hash: Buffer }>()('api key by hash', (db, { hash }) =>
  db
    .selectFrom('api_key')
    .innerJoin('account', 'account.id', 'account_id')
    .select([
      'api_key.id',
      'account_id',
      'scope',
      'suspended_at',
      'allowlist',
      'sandbox_seconds_limit',
      'sandbox_ops_per_minute',
      'sandbox_lifecycle_per_minute',
    ])
    .where('hash', '=', hash)
    .where(isLive),
)

export const findApiKey = (db: Queries, hash: Buffer) => byHash(db, { hash })

const used = done<{ ids: string[] }>()('api keys were used', (db, { ids }) =>
  db
    .updateTable('api_key')
    .set({ last_used_at: now })
    .where('id', '=', sql<string>`any(${ids}::text[])`)
    .where(({ or, eb }) =>
      or([eb('last_used_at', 'is', null), eb('last_used_at', '<', sql<Date>`${now} - interval '1 minute'`)]),
    ),
)

/** Records that API keys were used, at most once a minute for each key. */
export const markUsed = (db: Queries, ids: string[]) => used(db, { ids })

interface MadeKey {
  id: string
  accountId: string
  name: string | null
  scope: Scope
  hash: Buffer
  lastFour: string
  expires: Date | null
}

/** Inserts an API key. Returns undefined if the requested expiry has already passed. */
export const insertApiKey = first<MadeKey>()('insert api key', (db, made) =>
  db
    .insertInto('api_key')
    .columns(['id', 'account_id', 'name', 'scope', 'hash', 'last_four', 'expires_at'])
    .expression(
      sql`select ${made.id}, ${made.accountId}, ${made.name}, ${made.scope}, ${made.hash}::bytea, ${made.lastFour}, expires
            from (select ${made.expires}::timestamptz as expires) as given
           where expires is null or expires > ${now}`,
    )
    .returning(shown),
)

export const findApiKeyToRotate = first<{ id: string; accountId: string }>()(
  'api key to rotate',
  (db, { id, accountId }) =>
    db
      .selectFrom('api_key')
      .select(['name', 'scope', sql<Date | null>`${now} + ${firstLifetime}`.as('expires')])
      .where('id', '=', id)
      .where('account_id', '=', accountId)
      .where(isLive),
)

const replace = done<{ id: string; overlapSeconds: number }>()(
  'replace api key',
  (db, { id, overlapSeconds }) =>
    db
      .updateTable('api_key')
      .set({
        expires_at: sql<Date>`least(expires_at, ${now} + make_interval(secs => ${overlapSeconds}::int))`,
        lifetime: firstLifetime,
        is_replaced: true,
      })
      .where('id', '=', id),
)

export const expireReplaced = (db: Queries, id: string, overlapSeconds: number) =>
  replace(db, { id, overlapSeconds })

export const listApiKeys = rows<Page & { accountId: string }>()(
  'api keys of account',
  (db, { accountId, before, limit }) =>
    db
      .selectFrom('api_key')
      .select(shown)
      .where('account_id', '=', accountId)
      .where('revoked_at', 'is', null)
      .where(isOlder(before))
      .orderBy('id', 'desc')
      .limit(limit),
)

export const revokeApiKey = hasRow<{ id: string; accountId: string }>()(
  'revoke api key',
  (db, { id, accountId }) =>
    db
      .updateTable('api_key')
      .set({ revoked_at: now })
      .where('id', '=', id)
      .where('account_id', '=', accountId)
      .where('revoked_at', 'is', null)
      .returning('id'),
)

const count = only<{ accountId: string }>()('count api keys', (db, { accountId }) =>
  db
    .selectFrom('api_key')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('account_id', '=', accountId),
)

export const countApiKeys = async (db: Queries, accountId: string) => (await count(db, { accountId })).count

const removeDead = done<{ accountId: string }>()('remove dead api keys', (db, { accountId }) =>
  db.deleteFrom('api_key').where('account_id', '=', accountId).where(key.not(isLive)),
)

export const removeDeadApiKeys = (db: Queries, accountId: string) => removeDead(db, { accountId })
