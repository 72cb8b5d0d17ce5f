import { type ApiKey, apiKeys as contract, type NewApiKey } from '../../shared/contract/api-keys.ts'
import type { Scope } from '../../shared/contract/endpoint.ts'
import { limits } from '../../shared/contract/limits.ts'
import { lockAccount } from '../../shared/data/accounts.ts'
import {
  type ApiKeyRow,
  countApiKeys,
  expireReplaced,
  findApiKeyToRotate,
  insertApiKey,
  listApiKeys as listKeys,
  removeDeadApiKeys,
  revokeApiKey as revokeKey,
} from '../../shared/data/api-keys.ts'
import type { Queries } from '../../shared/data/database.ts'
import { newApiKeyId } from '../../shared/data/ids.ts'
import { notify } from '../../shared/platform/notify.ts'
import { Problem } from '../../shared/platform/problem.ts'
import { makeApiKey } from '../auth/api-keys.ts'
import { gone } from '../errors/credentials.ts'
import { invalid } from '../errors/invalid.ts'
import { takePage } from '../http/page.ts'
import { route } from '../http/route.ts'

export const createApiKey = route(
  contract.createApiKey,
  ({ account, body: { name = null, expires_at, scope } }, { context: { db } }) =>
    db.share(account.id).transaction(async (db) => {
      await makeRoom(db, account.id)
      const expires = expires_at === undefined ? null : new Date(expires_at)
      const made = await insert(db, account.id, { name, scope, expires })
      if (!made) throw invalid({ path: 'expires_at', message: 'must be in the future' })
      return made
    }),
)

export const rotateApiKey = route(
  contract.rotateApiKey,
  async ({ account, params: { key_id }, body: { overlap_seconds } }, { context: { db, redis } }) => {
    const made = await db.share(account.id).transaction(async (db) => {
      await makeRoom(db, account.id)
      const old = await findApiKeyToRotate(db, { id: key_id, accountId: account.id })
      if (!old) throw unknownKey()
      await expireReplaced(db, key_id, overlap_seconds)
      return (await insert(db, account.id, old))!
    })
    void notify(redis, 'key', key_id).catch(() => {})
    return made
  },
)

export const listApiKeys = route(
  contract.listApiKeys,
  async ({ account, query: { limit, cursor: before = null } }, { context: { db } }) => {
    const rows = await listKeys(db, { accountId: account.id, before, limit: limit + 1 })
    return takePage(rows.map(present), limit)
  },
)

export const revokeApiKey = route(
  contract.revokeApiKey,
  async ({ account, params: { key_id } }, { context: { db, redis } }) => {
    const isRevoked = await revokeKey(db.share(account.id), { id: key_id, accountId: account.id })
    if (!isRevoked) throw unknownKey()
    // Without the notification, long-lived connections of this key would close seconds later.
    void notify(redis, 'key', key_id).catch(() => {})
    return undefined
  },
)

const unknownKey = () => new Problem('not_found', 'The account has no API key with this id.')

/**
 * Deletes revoked and expired keys if the account has reached its limit of stored keys.
 * @throws {Problem} `api_key_limit_reached` if all stored keys are valid
 */
async function makeRoom(db: Queries, accountId: string): Promise<void> {
  if (!(await lockAccount(db, accountId))) throw gone()
  if ((await countApiKeys(db, accountId)) < limits.apiKeys) return
  await removeDeadApiKeys(db, accountId)
  if ((await countApiKeys(db, accountId)) < limits.apiKeys) return
  throw new Problem(
    'api_key_limit_reached',
    `The account has reached its limit of ${limits.apiKeys} API keys. Revoke a key that is no longer used. The list of keys shows when each key was last used.`,
    { members: { limit: limits.apiKeys } },
  )
}

async function insert(
  db: Queries,
  accountId: string,
  { name, scope, expires }: { name: string | null; scope: Scope; expires: Date | null },
): Promise<NewApiKey | undefined> {
  const { raw, hash, lastFour } = makeApiKey()
  const row = await insertApiKey(db, { id: newApiKeyId(), accountId, name, scope, hash, lastFour, expires })
  if (!row) return undefined
  const { last_used_at, ...made } = present(row)
  return { ...made, key: raw }
}

const present = (row: ApiKeyRow): ApiKey => ({
  ...row,
  name: row.name ?? null,
  created_at: row.created_at.toISOString(),
  expires_at: row.expires_at?.toISOString() ?? null,
  last_used_at: row.last_used_at?.toISOString() ?? null,
})
