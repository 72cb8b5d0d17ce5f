import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import Scrypt from 'scrypt-kdf'
import { findAccount, resetPassword, revokeAllSessions, unsuspend } from '../../shared/data/accounts.ts'
import type { Database, Queries } from '../../shared/data/database.ts'
import { suspend } from '../../shared/data/suspend.ts'
import { listAccountsWithUsage, toHours } from '../../shared/data/usage.ts'
import { describeLimitOverrides, limitOverridesOf } from './limits.ts'
import { type Report, showColumns } from './report.ts'

interface AccountLine {
  id: string
  email: string
}

export async function listAccounts(db: Queries): Promise<Report> {
  const rows = await listAccountsWithUsage(db)
  const data = rows.map((row) => ({
    id: row.id,
    email: row.email,
    created_at: row.created_at.toISOString(),
    state: row.deleted_at ? 'being deleted' : row.suspended_at ? 'suspended' : 'active',
    sandboxes: row.sandboxes,
    sandbox_hours: toHours(row.milliseconds),
    limits: limitOverridesOf(row),
  }))
  const head = ['EMAIL', 'ID', 'SINCE', 'STATE', 'SANDBOXES', 'HOURS', 'OWN LIMITS']
  const cells = data.map(({ email, id, created_at, state, sandboxes, sandbox_hours, limits }) => [
    email,
    id,
    created_at.slice(0, 10),
    state,
    String(sandboxes),
    sandbox_hours.toFixed(2),
    describeLimitOverrides(limits),
  ])
  return { value: { data }, text: showColumns([head, ...cells]).join('\n') }
}

export async function revokeSessionsOf(db: Queries, { id, email }: AccountLine): Promise<Report> {
  await revokeAllSessions(db, id)
  const text = `All sessions of ${email} have ended. Its API keys remain valid.`
  return { value: { id, email, sessions_ended: true }, text }
}

export async function resetPasswordOf(db: Queries, account: AccountLine, logN: number): Promise<Report> {
  const password = randomBytes(15).toString('base64url')
  const hash = Buffer.from(await Scrypt.kdf(password, { logN }))
  await resetPassword(db, account.id, hash)
  const text = `The new password of ${account.email} is ${password}
This password is not shown again. All sessions of the account have ended, and its API keys remain valid.
Change the password with \`sandlot account password\`.`
  return { value: { ...account, password, sessions_ended: true }, text }
}

/** Suspends an account. Its API keys are refused within a second, and the reconciler deletes its pods. */
export async function suspendAccount(db: Database, account: AccountLine): Promise<Report> {
  const { length: ended } = await suspend(db, account.id)
  return {
    value: { ...account, state: 'suspended', sandboxes_ended: ended },
    text: `${account.email} is suspended. Sandboxes ended: ${ended}.`,
  }
}

/** @throws if the account is being deleted */
export async function unsuspendAccount(db: Database, { id, email }: AccountLine): Promise<Report> {
  if (!(await unsuspend(db, id))) throw new Error(`${email} is being deleted. A deletion cannot be undone.`)
  return { value: { id, email, state: 'active' }, text: `${email} is active.` }
}

/**
 * Marks an account for deletion, ends its sandboxes, and waits until workers have deleted the account.
 * @throws if the deletion takes longer than a minute; it then continues in the background
 */
export async function removeAccount(
  db: Database,
  account: AccountLine,
  log: (line: string) => void,
): Promise<Report> {
  const { length: ended } = await suspend(db, account.id, { isDeleted: true })
  log(`Sandboxes ended: ${ended}. Waiting for the workers to remove the account ...`)
  const endMs = performance.now() + 60_000
  while (performance.now() < endMs) {
    if (!(await findAccount(db, account.id))) {
      const value = { ...account, state: 'deleted', sandboxes_ended: ended }
      return { value, text: `${account.email} has been deleted.` }
    }
    await sleep(250)
  }
  throw new Error(
    `${account.email} is suspended and marked for deletion. Workers will delete the account after its last pod is gone. Check that the workers are running.`,
  )
}
