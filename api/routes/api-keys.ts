import { tellChange } from '../../shared/changes.ts'
import {
  type ApiKey,
  createApiKey,
  listApiKeys,
  type NewApiKey,
  revokeApiKey,
} from '../../shared/contract/api-keys.ts'
import { newApiKeyId } from '../../shared/ids.ts'
import { Problem } from '../../shared/problem.ts'
import { makeApiKey } from '../api-keys.ts'
import type { App } from '../app.ts'
import { pageOf, readCursor } from '../page.ts'
import { route } from '../route.ts'
import { invalid } from '../validate.ts'

type KeyRow = {
  id: string
  name: string | null
  last_four: string
  created_at: string
  expires_at: string | null
  last_used_at: string | null
}

export const apiKeys = ({ context: { db, redis } }: App) => [
  route(createApiKey, async ({ account, body: { name, expires_at } }): Promise<NewApiKey> => {
    const { raw, hash, lastFour } = makeApiKey()
    const expires = expires_at === undefined ? null : new Date(expires_at)
    const [row] = await db.query<KeyRow>(
      `insert into api_key (id, account_id, name, hash, last_four, expires_at)
       select ?, ?, ?, ?, ?, expires
         from (select ?::timestamptz as expires) as given
        where expires is null or expires > sandlot_now()
    returning *`,
      [newApiKeyId(), account.id, name ?? null, hash, lastFour, expires],
    )
    if (!row) throw invalid({ path: 'expires_at', message: 'must be in the future' })
    const { last_used_at, ...shown } = present(row)
    return { ...shown, key: raw }
  }),

  route(listApiKeys, async ({ account, query: { limit, cursor } }) => {
    const before = readCursor(cursor)
    const rows = await db.query<KeyRow>(
      `select * from api_key
        where account_id = ? and revoked_at is null and (?::text is null or id < ?)
        order by id desc limit ?`,
      [account.id, before, before, limit + 1],
    )
    return pageOf(rows.map(present), limit)
  }),

  route(revokeApiKey, async ({ account, params: { key_id } }) => {
    const revoked = await db.query(
      `update api_key set revoked_at = sandlot_now()
        where id = ? and account_id = ? and revoked_at is null returning id`,
      [key_id, account.id],
    )
    if (revoked.length === 0) throw new Problem('not_found', 'There is no such API key.')
    // A hint to whoever serves something long under it, who looks by himself later.
    void tellChange(redis, key_id).catch(() => {})
    return undefined
  }),
]

const present = (row: KeyRow): ApiKey => ({
  id: row.id,
  name: row.name,
  last_four: row.last_four,
  created_at: time(row.created_at),
  expires_at: row.expires_at && time(row.expires_at),
  last_used_at: row.last_used_at && time(row.last_used_at),
})

const time = (text: string) => new Date(text).toISOString()
