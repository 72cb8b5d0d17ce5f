import { limits } from '../../shared/contract/limits.ts'
import type { Secret } from '../../shared/contract/secrets.ts'
import { secrets as contract } from '../../shared/contract/secrets.ts'
import type { Queries } from '../../shared/data/database.ts'
import { newSecretId } from '../../shared/data/ids.ts'
import { lockAccount } from '../../shared/data/locks.ts'
import { secretSealContext } from '../../shared/data/secrets.ts'
import { Problem } from '../../shared/platform/problem.ts'
import { gone } from '../auth/authenticate.ts'
import { mayBeKept } from '../exec/allowlist.ts'
import { pageOf, readCursor } from '../http/page.ts'
import { route } from '../http/route.ts'
import { invalid } from '../http/validate.ts'
import { findOwn } from '../sandboxes/own.ts'
import { destroyed } from '../sandboxes/running.ts'

export const createSecret = route(
  contract.createSecret,
  async ({ account, body: { name, value, sandbox_id = null } }, { context: { db, sealer } }) => {
    mayBeKept(account, 'secret', { [name]: value })
    const id = newSecretId()
    const bytes = Buffer.byteLength(value) + name.length + 2
    const sealed = sealer.seal(value, secretSealContext(id))
    return await db.share(account.id).transaction(async (db) => {
      if (!(await lockAccount(db, account.id))) throw gone()
      if (sandbox_id) await lockActive(db, account.id, sandbox_id)
      await removeOne(db, account.id, name, sandbox_id)
      await mustHaveRoom(db, account.id, bytes)
      const [row] = await db.query<Secret>(
        `insert into secret (id, account_id, sandbox_id, name, sealed_value, bytes, created_at)
         values (?, ?, ?, ?, ?, ?, sandlot_now()) returning ${shown}`,
        [id, account.id, sandbox_id, name, sealed, bytes],
      )
      return present(row!)
    })
  },
)

export const listSecrets = route(
  contract.listSecrets,
  async ({ account, query: { limit, cursor, sandbox_id = null } }, { context: { db } }) => {
    if (sandbox_id) await findOwn(db, account.id, sandbox_id)
    const before = readCursor(cursor)
    const rows = await db.query<Secret>(
      `select ${shown} from secret
        where account_id = ? and (?::text is null or sandbox_id = ?) and (?::text is null or id < ?)
        order by id desc limit ?`,
      [account.id, sandbox_id, sandbox_id, before, before, limit + 1],
    )
    return pageOf(rows.map(present), limit)
  },
)

export const deleteSecret = route(
  contract.deleteSecret,
  async ({ account, params: { name }, query: { sandbox_id = null } }, { context: { db } }) => {
    const removed = await db.share(account.id).transaction(async (db) => {
      // While another request replaces its value, the former row is gone already and the next not yet to be seen.
      if (!(await lockAccount(db, account.id))) throw gone()
      return await removeOne(db, account.id, name, sandbox_id)
    })
    if (removed) return undefined
    throw new Problem('not_found', 'There is no such secret.')
  },
)

/** Never the value: only a worker can open it. */
const shown = 'id, name, sandbox_id, created_at'

const present = (row: Secret): Secret => ({ ...row, created_at: new Date(row.created_at).toISOString() })

/** Locks an active sandbox, so that it is destroyed only after the secret is there, and the secret with it. */
async function lockActive(db: Queries, accountId: string, sandboxId: string): Promise<void> {
  const [active] = await db.query(
    'select id from sandbox where id = ? and account_id = ? and destroyed_at is null for share',
    [sandboxId, accountId],
  )
  if (!active) throw destroyed((await findOwn(db, accountId, sandboxId)).row)
}

async function removeOne(db: Queries, accountId: string, name: string, sandboxId: string | null) {
  const rows = await db.query(
    `delete from secret where account_id = ? and name = ? and sandbox_id is not distinct from ?
  returning id`,
    [accountId, name, sandboxId],
  )
  return rows.length > 0
}

async function mustHaveRoom(db: Queries, accountId: string, bytes: number): Promise<void> {
  const [row] = await db.query<{ count: string; bytes: string }>(
    'select count(*) as count, coalesce(sum(bytes), 0) as bytes from secret where account_id = ?',
    [accountId],
  )
  const message =
    Number(row!.bytes) + bytes > limits.secretsBytes
      ? `is too long: the account's secrets may have ${limits.secretsBytes} bytes together, and ${row!.bytes} are used`
      : Number(row!.count) >= limits.secrets
        ? `is one too many: an account may have ${limits.secrets} secrets`
        : undefined
  if (message) throw invalid({ path: 'value', message })
}
