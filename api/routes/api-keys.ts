import type { ApiKey, NewApiKey } from '../../shared/contract/api-keys.ts'
import { apiKeys as contract } from '../../shared/contract/api-keys.ts'
import type { Scope } from '../../shared/contract/endpoint.ts'
import { limits } from '../../shared/contract/limits.ts'
import type { Queries } from '../../shared/data/database.ts'
import { newApiKeyId } from '../../shared/data/ids.ts'
import { lockAccount } from '../../shared/data/locks.ts'
import { notify } from '../../shared/platform/notify.ts'
import { Problem } from '../../shared/platform/problem.ts'
import { makeApiKey } from '../auth/api-keys.ts'
import { gone } from '../auth/authenticate.ts'
import { pageOf, readCursor } from '../http/page.ts'
import { route } from '../http/route.ts'
import { invalid } from '../http/validate.ts'

/** Its times are as PostgreSQL writes them. */
type KeyRow = ApiKey

const shown = 'id, name, scope, last_four, created_at, expires_at, last_used_at'

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
      const [old] = await db.query<{ name: string | null; scope: Scope; again: string | null }>(
        `select name, scope, sandlot_now() + case when is_replaced then lifetime else expires_at - created_at end as again from api_key
          where id = ? and account_id = ? and ${isLive}`,
        [key_id, account.id],
      )
      if (!old) throw unknownKey()
      const expires = old.again === null ? null : new Date(old.again)
      await db.query(
        `update api_key
            set expires_at = least(expires_at, sandlot_now() + make_interval(secs => ?::int)),
                lifetime = case when is_replaced then lifetime else expires_at - created_at end,
                is_replaced = true
          where id = ?`,
        [overlap_seconds, key_id],
      )
      return (await insert(db, account.id, { ...old, expires }))!
    })
    void notify(redis, 'key', key_id).catch(() => {})
    return made
  },
)

export const listApiKeys = route(
  contract.listApiKeys,
  async ({ account, query: { limit, cursor } }, { context: { db } }) => {
    const before = readCursor(cursor)
    const rows = await db.query<KeyRow>(
      `select ${shown} from api_key
        where account_id = ? and revoked_at is null and (?::text is null or id < ?)
        order by id desc limit ?`,
      [account.id, before, before, limit + 1],
    )
    return pageOf(rows.map(present), limit)
  },
)

export const revokeApiKey = route(
  contract.revokeApiKey,
  async ({ account, params: { key_id } }, { context: { db, redis } }) => {
    const revoked = await db.share(account.id).query(
      `update api_key set revoked_at = sandlot_now()
        where id = ? and account_id = ? and revoked_at is null returning id`,
      [key_id, account.id],
    )
    if (revoked.length === 0) throw unknownKey()
    // Wakes whoever serves something long under it; without that they look a little later.
    void notify(redis, 'key', key_id).catch(() => {})
    return undefined
  },
)

const isLive = 'revoked_at is null and (expires_at is null or expires_at > sandlot_now())'

const unknownKey = () => new Problem('not_found', 'There is no such API key.')

/**
 * Deletes keys that are revoked or expired, so that an account never has more rows than it may have keys. Locks the
 * account, so that no two requests pass the bound together.
 * @throws {Problem} `api_key_limit_reached`
 */
async function makeRoom(db: Queries, accountId: string): Promise<void> {
  if (!(await lockAccount(db, accountId))) throw gone()
  const count = async () => {
    const [row] = await db.query<{ count: string }>(
      'select count(*) as count from api_key where account_id = ?',
      [accountId],
    )
    return Number(row!.count)
  }
  if ((await count()) < limits.apiKeys) return
  await db.query(`delete from api_key where account_id = ? and not (${isLive})`, [accountId])
  if ((await count()) < limits.apiKeys) return
  throw new Problem(
    'api_key_limit_reached',
    `An account may have ${limits.apiKeys} API keys. Revoke one that is no longer used; the list says when each was last used.`,
    { members: { limit: limits.apiKeys } },
  )
}

/** @returns undefined when the key would have expired already */
async function insert(
  db: Queries,
  accountId: string,
  { name, scope, expires }: { name: string | null; scope: Scope; expires: Date | null },
): Promise<NewApiKey | undefined> {
  const { raw, hash, lastFour } = makeApiKey()
  const [row] = await db.query<KeyRow>(
    `insert into api_key (id, account_id, name, scope, hash, last_four, expires_at)
     select ?, ?, ?, ?, ?, ?, expires
       from (select ?::timestamptz as expires) as given
      where expires is null or expires > sandlot_now()
  returning ${shown}`,
    [newApiKeyId(), accountId, name, scope, hash, lastFour, expires],
  )
  if (!row) return undefined
  const { last_used_at, ...made } = present(row)
  return { ...made, key: raw }
}

const present = (row: KeyRow): ApiKey => ({
  ...row,
  created_at: time(row.created_at),
  expires_at: row.expires_at && time(row.expires_at),
  last_used_at: row.last_used_at && time(row.last_used_at),
})

const time = (text: string) => new Date(text).toISOString()
