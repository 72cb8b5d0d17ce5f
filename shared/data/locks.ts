/** What is done by one at a time: work by one worker, changes of an account by one transaction. */
import type { Queries } from './database.ts'

/** Numbers of our own among PostgreSQL's advisory locks. */
export const advisoryLocks = { migrations: 7_263_001, sweep: 7_263_002, pool: 7_263_003 } as const

/** Takes it until the transaction ends. @returns false when another worker has it */
export async function tryLock(transaction: Queries, name: keyof typeof advisoryLocks): Promise<boolean> {
  const [row] = await transaction.query<{ locked: boolean }>(
    'select pg_try_advisory_xact_lock(?) as locked',
    [advisoryLocks[name]],
  )
  return row?.locked ?? false
}

/** Until the transaction ends nobody else passes one of the account's bounds. Admission takes the same lock. */
export const lockAccount = (transaction: Queries, accountId: string) =>
  transaction.query('select from account where id = ? for no key update', [accountId])
