/** PostgreSQL advisory locks, for work that only one process may do at a time. */
import { sql } from 'kysely'
import type { Queries } from './database.ts'
import { only, statement } from './statement.ts'

export const advisoryLocks = { migrations: 7_263_001, pool: 7_263_003 } as const

const lock = statement<{ number: number }>()(
  'try lock',
  (_, { number }) => sql<{ locked: boolean }>`select pg_try_advisory_xact_lock(${number}::bigint) as locked`,
)

/** Acquires a lock until the transaction ends. Returns false if another transaction holds the lock. */
export const tryLock = async (transaction: Queries, name: keyof typeof advisoryLocks) =>
  (await only(transaction.run(lock, { number: advisoryLocks[name] }))).locked
