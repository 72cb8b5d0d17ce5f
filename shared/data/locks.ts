/** PostgreSQL advisory locks, for work that only one process may do at a time. */
import { sql } from 'kysely'
import type { Queries } from './database.ts'
import { only } from './statement.ts'

export const advisoryLocks = { migrations: 7_263_001, pool: 7_263_003 } as const

const lock = only<{ number: number }>()(
  'try lock',
  (_, { number }) => sql<{ locked: boolean }>`select pg_try_advisory_xact_lock(${number}::bigint) as locked`,
)

/** Acquires a lock until the transaction ends. Returns false if another transaction holds it. */
export const tryLock = async (transaction: Queries, name: keyof typeof advisoryLocks) =>
  (await lock(transaction, { number: advisoryLocks[name] })).locked
