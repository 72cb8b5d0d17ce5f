/** What only one does at a time: work by one worker, changes of an account by one transaction. */
import type { Queries } from './database.ts'

/** The numbers that we use for PostgreSQL's advisory locks. */
export const advisoryLocks = { migrations: 7_263_001, sweep: 7_263_002, pool: 7_263_003 } as const

/** Takes the lock until the transaction ends. @returns false when another worker has it */
export async function tryLock(transaction: Queries, name: keyof typeof advisoryLocks): Promise<boolean> {
  const [row] = await transaction.query<{ locked: boolean }>(
    'select pg_try_advisory_xact_lock(?) as locked',
    [advisoryLocks[name]],
  )
  return row?.locked ?? false
}

/**
 * Locks the account until the transaction ends, so that no two requests pass one of its bounds, or quotas, together.
 * @returns false when there is no such account any more
 */
export async function lockAccount(transaction: Queries, accountId: string): Promise<boolean> {
  const rows = await transaction.query('select from account where id = ? for no key update', [accountId])
  return rows.length > 0
}
