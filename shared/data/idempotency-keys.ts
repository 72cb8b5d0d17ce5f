/**
 * Statements for the `idempotency_key` table, which stores the keys of requests that create sandboxes. Only
 * this file writes to the table.
 */
import { sql } from 'kysely'
import { limits } from '../contract/limits.ts'
import { now, nowOnce } from './sql.ts'
import { done, first } from './statement.ts'

export const findIdempotencyKey = first<{ accountId: string; key: string }>()(
  'idempotency key',
  (db, { accountId, key }) =>
    db
      .selectFrom('idempotency_key')
      .select(['request_hash', 'sandbox_id'])
      .where('account_id', '=', accountId)
      .where('key', '=', key)
      .where('created_at', '>', sql<Date>`${now} - ${sql.lit(limits.idempotencyHours)} * interval '1 hour'`),
)

interface NewIdempotencyKey {
  accountId: string
  key: string
  hash: Buffer
  sandboxId: string
  at: Date
}

/** Stores an Idempotency-Key. Overwrites an expired entry with the same key. */
export const rememberIdempotencyKey = done<NewIdempotencyKey>()(
  'remember idempotency key',
  (db, { accountId, key, hash, sandboxId, at }) =>
    db
      .insertInto('idempotency_key')
      .values({ account_id: accountId, key, request_hash: hash, sandbox_id: sandboxId, created_at: at })
      .onConflict((conflict) =>
        conflict.columns(['account_id', 'key']).doUpdateSet((row) => ({
          request_hash: row.ref('excluded.request_hash'),
          sandbox_id: row.ref('excluded.sandbox_id'),
          created_at: row.ref('excluded.created_at'),
        })),
      ),
)

export const forgetIdempotencyKeys = done()('forget idempotency keys', (db) =>
  // Deletes keys only at twice their lifetime, so that the cleanup cannot affect a concurrent request.
  db
    .deleteFrom('idempotency_key')
    .where(
      'created_at',
      '<',
      sql<Date>`${nowOnce} - ${sql.lit(2 * limits.idempotencyHours)} * interval '1 hour'`,
    ),
)
