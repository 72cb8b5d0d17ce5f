/**
 * Statements for the `secret` table. Only this file writes to the table, apart from a trigger that deletes
 * the secrets of destroyed sandboxes.
 */
import { sql } from 'kysely'
import type { Queries } from './database.ts'
import type { SecretRow as Row } from './entities.ts'
import { isOlder, now, type Page } from './sql.ts'
import { hasRow, only, rows } from './statement.ts'

export const secretSealContext = (secretId: string) => `secret ${secretId}`

/** Columns that the API returns. Only workers can decrypt the value. */
const shown = ['id', 'name', 'sandbox_id', 'created_at'] as const
export type ShownSecret = Pick<Row, (typeof shown)[number]>

type NewSecret = Pick<Row, 'id' | 'account_id' | 'sandbox_id' | 'name' | 'sealed_value' | 'bytes'>

export const insertSecret = only<NewSecret>()('insert secret', (db, secret) =>
  db
    .insertInto('secret')
    .values({
      id: secret.id,
      account_id: secret.account_id,
      sandbox_id: secret.sandbox_id ?? null,
      name: secret.name,
      sealed_value: secret.sealed_value,
      bytes: secret.bytes,
      created_at: now,
    })
    .returning(shown),
)

interface SecretPage extends Page {
  accountId: string
  sandboxId: string | null
}

export const listSecrets = rows<SecretPage>()(
  'secrets of account',
  (db, { accountId, sandboxId, before, limit }) =>
    db
      .selectFrom('secret')
      .select(shown)
      .where('account_id', '=', accountId)
      .where(({ or, eb }) => or([sql<boolean>`${sandboxId}::text is null`, eb('sandbox_id', '=', sandboxId)]))
      .where(isOlder(before))
      .orderBy('id', 'desc')
      .limit(limit),
)

/** Returns the account's secrets, followed by the sandbox's secrets, which take precedence. */
export const readSecretsOf = rows<{ accountId: string; sandboxId: string }>()(
  'secrets of sandbox',
  (db, { accountId, sandboxId }) =>
    db
      .selectFrom('secret')
      .select(['id', 'name', 'sealed_value'])
      .where('account_id', '=', accountId)
      .where(({ or, eb }) => or([eb('sandbox_id', 'is', null), eb('sandbox_id', '=', sandboxId)]))
      .orderBy('sandbox_id', (order) => order.asc().nullsFirst()),
)

interface SecretName {
  accountId: string
  name: string
  sandboxId: string | null
}

export const removeSecret = hasRow<SecretName>()('remove secret', (db, { accountId, name, sandboxId }) =>
  db
    .deleteFrom('secret')
    .where('account_id', '=', accountId)
    .where('name', '=', name)
    .where('sandbox_id', 'is not distinct from', sandboxId)
    .returning('id'),
)

const sums = only<{ accountId: string }>()('size of secrets', (db, { accountId }) =>
  db
    .selectFrom('secret')
    .select([sql<number>`count(*)`.as('count'), sql<number>`coalesce(sum(bytes), 0)::bigint`.as('bytes')])
    .where('account_id', '=', accountId),
)

export const measureSecrets = (db: Queries, accountId: string) => sums(db, { accountId })
