/** Statements for the `account` table. Only this file writes to the table. */
import { sql } from 'kysely'
import type { Queries, Transactions } from './database.ts'
import type { AccountRow } from './entities.ts'
import { deleteSandboxesOf } from './sandbox-writes.ts'
import { now } from './sql.ts'
import { done, first, hasRow, rows } from './statement.ts'

export type AccountOfSession = Pick<AccountRow, 'id' | 'email' | 'created_at' | 'session_generation'>

export type AuthenticatedAccount = AccountOfSession &
  Pick<AccountRow, 'password_hash' | 'suspended_at' | 'login_addresses'>

const ofSession = ['id', 'email', 'created_at', 'session_generation'] as const
const known = [...ofSession, 'password_hash', 'suspended_at', 'login_addresses'] as const

const insert = first<{ id: string; email: string; hash: Buffer; addresses: string }>()(
  'insert account',
  (db, { id, email, hash, addresses }) =>
    db
      .insertInto('account')
      .values({ id, email, password_hash: hash, login_addresses: sql`${addresses}::jsonb` })
      .onConflict((conflict) => conflict.column('email').doNothing())
      .returning(ofSession),
)

export const insertAccount = (
  db: Queries,
  { address, ...account }: { id: string; email: string; hash: Buffer; address: string },
) => insert(db, { ...account, addresses: JSON.stringify([address]) })

const byEmail = first<{ email: string }>()('account by e-mail', (db, { email }) =>
  db.selectFrom('account').select(known).where('email', '=', email),
)

export const findAccountByEmail = (db: Queries, email: string) => byEmail(db, { email })

const byId = first<{ id: string }>()('account by id', (db, { id }) =>
  db.selectFrom('account').select(known).where('id', '=', id),
)

export const findAccount = (db: Queries, id: string) => byId(db, { id })

const withSandboxes = first<{ id: string }>()('account with sandboxes', (db, { id }) =>
  db
    .selectFrom('account')
    .select(({ selectFrom }) => [
      'email',
      'created_at',
      'concurrent_limit',
      'hours_limit',
      selectFrom('sandbox')
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .whereRef('account_id', '=', 'account.id')
        .where('destroyed_at', 'is', null)
        .where('expires_at', '>', now)
        .$asScalar()
        .$notNull()
        .as('active'),
    ])
    .where('id', '=', id),
)

export const findAccountWithSandboxes = (db: Queries, id: string) => withSandboxes(db, { id })

const locked = first<{ id: string }>()('lock account', (db, { id }) =>
  db
    .selectFrom('account')
    .select(['suspended_at', 'concurrent_limit', 'hours_limit'])
    .where('id', '=', id)
    .forNoKeyUpdate(),
)

/**
 * Locks the account's row until the transaction ends, so that concurrent requests cannot jointly exceed a
 * limit. Each later statement sees everything committed before the lock was acquired.
 */
export const lockAccount = (transaction: Queries, id: string) => locked(transaction, { id })

type Generation = number | undefined
const isOf = (generation: Generation) => sql<boolean>`session_generation = ${generation}::int`

interface PasswordChange {
  id: string
  generation: Generation
  hash: Buffer
}

const setPassword = first<PasswordChange & { addresses: string }>()(
  'set password',
  (db, { id, generation, hash, addresses }) =>
    db
      .updateTable('account')
      .set((row) => ({
        password_hash: hash,
        session_generation: row('session_generation', '+', 1),
        login_addresses: sql`${addresses}::jsonb`,
      }))
      .where('id', '=', id)
      .where(isOf(generation))
      .returning(ofSession),
)

/**
 * Changes the account's password and ends all of its sessions.
 * @returns undefined, without changing anything, if the session that made the request has already ended
 */
export const changePassword = (db: Queries, { address, ...change }: PasswordChange & { address: string }) =>
  setPassword(db, { ...change, addresses: JSON.stringify([address]) })

const resetHash = done<{ id: string; hash: Buffer }>()('reset password', (db, { id, hash }) =>
  db
    .updateTable('account')
    .set((row) => ({
      password_hash: hash,
      session_generation: row('session_generation', '+', 1),
      login_addresses: sql`'[]'::jsonb`,
    }))
    .where('id', '=', id),
)

/**
 * Resets the account's password, ends all of its sessions, and forgets the IP addresses of earlier logins.
 */
export const resetPassword = (db: Queries, id: string, hash: Buffer) => resetHash(db, { id, hash })

const replaceHash = done<{ id: string; former: Buffer; hash: Buffer }>()(
  'replace password hash',
  (db, { id, former, hash }) =>
    db
      .updateTable('account')
      .set({ password_hash: hash })
      .where('id', '=', id)
      .where('password_hash', '=', former),
)

export const replacePasswordHash = (db: Queries, { id, password_hash }: AuthenticatedAccount, hash: Buffer) =>
  replaceHash(db, { id, former: password_hash, hash })

/**
 * Maximum number of IP addresses remembered per account. Logins from these addresses have a separate rate
 * limit.
 */
const maxAddresses = 8

const putAddressFirst = done<{ id: string; hash: Buffer; address: string }>()(
  'remember address of login',
  (db, { id, hash, address }) =>
    db
      .updateTable('account')
      .set({
        login_addresses: sql`(
          select jsonb_agg(address order by place)
            from (select ${address}::text as address, 0 as place
                   union all
                  select address, place
                    from jsonb_array_elements_text(login_addresses) with ordinality as known (address, place)
                   where address <> ${address}
                   order by place limit ${sql.lit(maxAddresses)}) as latest)`,
      })
      .where('id', '=', id)
      .where('password_hash', '=', hash),
)

/** Remembers the IP address of a login. Does nothing if the password has changed since the login. */
export const rememberAddress = (
  db: Queries,
  { id, password_hash: hash }: AuthenticatedAccount,
  address: string,
) => putAddressFirst(db, { id, hash, address })

const sessionOf = first<{ id: string }>()('session of account', (db, { id }) =>
  db.selectFrom('account').select(['suspended_at', 'session_generation']).where('id', '=', id),
)

export const findSession = (db: Queries, id: string) => sessionOf(db, { id })

const endAll = done<{ id: string }>()('end all sessions', (db, { id }) =>
  db
    .updateTable('account')
    .set((row) => ({ session_generation: row('session_generation', '+', 1) }))
    .where('id', '=', id),
)

export const revokeAllSessions = (db: Queries, id: string) => endAll(db, { id })

/**
 * Ends all of the account's sessions. Returns false if the session that made the request has already ended.
 */
export const revokeSessions = hasRow<{ id: string; generation: Generation }>()(
  'end own sessions',
  (db, { id, generation }) =>
    db
      .updateTable('account')
      .set((row) => ({ session_generation: row('session_generation', '+', 1) }))
      .where('id', '=', id)
      .where(isOf(generation))
      .returning('id'),
)

const setAllowlist = hasRow<{ id: string; commands: string | null }>()(
  'set allowlist',
  (db, { id, commands }) =>
    db
      .updateTable('account')
      .set({ allowlist: sql`${commands}::jsonb` })
      .where('id', '=', id)
      .returning('id'),
)

/** @param commands the allowed commands; null allows every command */
export const writeAllowlist = (db: Queries, id: string, commands: string[] | null) =>
  setAllowlist(db, { id, commands: commands && JSON.stringify(commands) })

const allowlistOf = first<{ id: string }>()('allowlist of account', (db, { id }) =>
  db.selectFrom('account').select('allowlist').where('id', '=', id),
)

export const readAllowlist = async (db: Queries, id: string) =>
  (await allowlistOf(db, { id }))?.allowlist ?? null

const overrideColumns = [
  'concurrent_limit',
  'hours_limit',
  'sandbox_seconds_limit',
  'sandbox_ops_per_minute',
  'sandbox_lifecycle_per_minute',
] as const
export type OverrideColumn = (typeof overrideColumns)[number]
export type Overrides = Pick<AccountRow, OverrideColumn>

const setOverride = (column: OverrideColumn) =>
  done<{ id: string; figure: number | null }>()(`set ${column}`, (db, { id, figure }) =>
    db.updateTable('account').set(column, figure).where('id', '=', id),
  )
const settersOfOverrides = new Map(overrideColumns.map((column) => [column, setOverride(column)]))

export const changeOverrides = (db: Transactions, id: string, changes: Partial<Overrides>): Promise<void> =>
  db.transaction(async (db) => {
    for (const [column, setter] of settersOfOverrides) {
      const figure = changes[column]
      if (figure !== undefined) await setter(db, { id, figure })
    }
  })

const overridesOf = first<{ id: string }>()('limits of account', (db, { id }) =>
  db.selectFrom('account').select(overrideColumns).where('id', '=', id),
)

export const readOverrides = (db: Queries, id: string) => overridesOf(db, { id })

const suspendOne = done<{ id: string; isDeleted: boolean }>()('suspend account', (db, { id, isDeleted }) =>
  db
    .updateTable('account')
    .set((row) => ({
      suspended_at: row.fn.coalesce('suspended_at', now),
      deleted_at: row.fn.coalesce('deleted_at', sql<Date>`case when ${isDeleted}::boolean then ${now} end`),
    }))
    .where('id', '=', id),
)

/** Marks an account as suspended. Unlike `suspend` in suspend.ts, does not end the account's sandboxes. */
export const markSuspended = (db: Queries, id: string, isDeleted: boolean) =>
  suspendOne(db, { id, isDeleted })

const unsuspendOne = hasRow<{ id: string }>()('unsuspend account', (db, { id }) =>
  db
    .updateTable('account')
    .set({ suspended_at: null })
    .where('id', '=', id)
    .where('deleted_at', 'is', null)
    .returning('id'),
)

/** Returns false if the account is deleted. */
export const unsuspend = (db: Queries, id: string) => unsuspendOne(db, { id })

const passwordCosts = rows<{ costAt: number }>()(
  'costs of passwords',
  (_, { costAt }) => sql<{ cost: number | null; accounts: number; installation: string }>`
  select get_byte(password_hash, ${costAt}::int) as cost, count(*) as accounts, installation.id as installation
    from installation left join account on octet_length(password_hash) > ${costAt}::int
   group by cost, installation order by cost`,
)

/**
 * Counts accounts by the cost of their password hash. If there are no accounts, returns one row with a null
 * cost.
 * @param costAt offset of the cost byte in a hash
 */
export const countPasswordCosts = (db: Queries, costAt: number) => passwordCosts(db, { costAt })

const removeDone = rows()('remove deleted accounts', (db) =>
  db
    .with('done', (db) =>
      db
        .selectFrom('account')
        .select('id')
        .where('deleted_at', 'is not', null)
        .where(({ not, exists, selectFrom }) =>
          not(
            exists(
              selectFrom('sandbox').whereRef('account_id', '=', 'account.id').where('reaped_at', 'is', null),
            ),
          ),
        )
        .forUpdate(),
    )
    .with('sandboxes', deleteSandboxesOf(sql`select id from done`))
    .deleteFrom('account')
    .where('id', 'in', (db) => db.selectFrom('done').select('id'))
    .returning('id'),
)

/** Removes deleted accounts that have no pods left. */
export async function removeDeletedAccounts(db: Queries): Promise<string[]> {
  return (await removeDone(db)).map(({ id }) => id)
}
