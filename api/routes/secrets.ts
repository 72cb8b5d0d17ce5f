import { limits } from '../../shared/contract/limits.ts'
import type { Secret } from '../../shared/contract/secrets.ts'
import { secrets as contract } from '../../shared/contract/secrets.ts'
import { lockAccount } from '../../shared/data/accounts.ts'
import type { Queries } from '../../shared/data/database.ts'
import { newSecretId } from '../../shared/data/ids.ts'
import { lockActive } from '../../shared/data/sandboxes.ts'
import {
  insertSecret,
  listSecrets as listRows,
  measureSecrets,
  removeSecret,
  type ShownSecret,
  secretSealContext,
} from '../../shared/data/secrets.ts'
import { Problem } from '../../shared/platform/problem.ts'
import { refuseDestroyed } from '../../shared/platform/sandbox-check.ts'
import { gone } from '../errors/credentials.ts'
import { invalid } from '../errors/invalid.ts'
import { assertStorable } from '../exec/allowlist.ts'
import { takePage } from '../http/page.ts'
import { route } from '../http/route.ts'
import { loadSandbox } from '../sandboxes/load-sandbox.ts'

export const createSecret = route(
  contract.createSecret,
  async ({ account, body: { name, value, sandbox_id = null } }, { context: { db, sealer } }) => {
    assertStorable(account, 'secret', { [name]: value })
    const id = newSecretId()
    const bytes = Buffer.byteLength(value) + name.length + 2
    const sealed = sealer.seal(value, secretSealContext(id))
    return await db.share(account.id).transaction(async (db) => {
      if (!(await lockAccount(db, account.id))) throw gone()
      if (sandbox_id) await assertActive(db, account.id, sandbox_id)
      await removeSecret(db, { accountId: account.id, name, sandboxId: sandbox_id })
      await assertRoom(db, account.id, bytes)
      const secret = { id, account_id: account.id, sandbox_id, name, sealed_value: sealed, bytes }
      return present(await insertSecret(db, secret))
    })
  },
)

export const listSecrets = route(
  contract.listSecrets,
  async ({ account, query: { limit, cursor: before = null, sandbox_id = null } }, { context: { db } }) => {
    if (sandbox_id) await loadSandbox(db, account.id, sandbox_id)
    const page = { accountId: account.id, sandboxId: sandbox_id, before, limit: limit + 1 }
    const rows = await listRows(db, page)
    return takePage(rows.map(present), limit)
  },
)

export const deleteSecret = route(
  contract.deleteSecret,
  async ({ account, params: { name }, query: { sandbox_id = null } }, { context: { db } }) => {
    const removed = await db.share(account.id).transaction(async (db) => {
      // Waits for a concurrent replacement, which deletes the old row before inserting a new one.
      if (!(await lockAccount(db, account.id))) throw gone()
      return await removeSecret(db, { accountId: account.id, name, sandboxId: sandbox_id })
    })
    if (removed) return undefined
    throw new Problem('not_found', 'No secret with this name exists.')
  },
)

const present = (row: ShownSecret): Secret => ({
  ...row,
  sandbox_id: row.sandbox_id ?? null,
  created_at: row.created_at.toISOString(),
})

/**
 * Locks the row of an active sandbox before a secret is inserted, so that destroying the sandbox also deletes
 * the secret.
 * @throws {Problem} `not_found` or `sandbox_destroyed`
 */
async function assertActive(db: Queries, accountId: string, id: string): Promise<void> {
  if (!(await lockActive(db, { id, accountId }))) refuseDestroyed(await loadSandbox(db, accountId, id))
}

async function assertRoom(db: Queries, accountId: string, bytes: number): Promise<void> {
  const used = await measureSecrets(db, accountId)
  const message =
    used.bytes + bytes > limits.secretsBytes
      ? `is too long: an account's secrets may have at most ${limits.secretsBytes} bytes in total, of which ${used.bytes} are in use`
      : used.count >= limits.secrets
        ? `exceeds the limit of ${limits.secrets} secrets per account`
        : undefined
  if (message) throw invalid({ path: 'value', message })
}
