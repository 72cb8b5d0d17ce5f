/**
 * The database of a process: one pool, and parameterized statements. The ORM creates the pool, builds the statements
 * and runs the migrations. Statements run directly on the pool, because the ORM's entity manager costs more than a
 * query.
 */
import { MikroORM, type PostgreSqlConnection } from '@mikro-orm/postgresql'
import { parse } from 'pg-connection-string'
import { limitByKey } from '../lib/limit-by-key.ts'
import { entities, type Tables } from './entities/index.ts'
import type { Builder, Statement } from './statement.ts'

export type Row = Record<string, unknown>

export interface Queries {
  run<Values, Result>(
    statement: Statement<Values, Result>,
    ...values: keyof Values extends never ? [] : [Values]
  ): Promise<Result[]>
  /** Runs plain SQL with `?` for each parameter, for tests and benchmarks. The type of its rows is not checked. */
  query<T extends Row = Row>(sql: string, parameters?: unknown[]): Promise<T[]>
}

export interface Transactions extends Queries {
  /** Commits when `work` resolves, rolls back when it rejects. */
  transaction<T>(work: (queries: Queries) => Promise<T>): Promise<T>
}

export interface Database extends Transactions {
  /**
   * The same database, for statements that may wait for a lock of an account's rows. An account uses only a few
   * connections of the pool through it, so a locked row delays no other account.
   */
  share(accountId: string): Transactions
  close(): Promise<void>
}

/** Timeouts of a connection in milliseconds; 0 disables one. */
export interface DatabaseTimeouts {
  /** For opening a connection, or for a free one in the pool. */
  connection: number
  /** For the answer to a statement. */
  answer: number
  statement: number
  lock: number
  /** In a transaction, between two statements. */
  idle: number
}

/**
 * PostgreSQL cancels a statement before its client times out, so that a statement that was reported as failed is not
 * executed later. A process that freezes in a transaction loses its locks.
 */
export const requestTimeouts: DatabaseTimeouts = {
  connection: 5_000,
  answer: 10_000,
  statement: 8_000,
  lock: 2_000,
  idle: 10_000,
}

/** The number of connections that one account may use through `share`. */
const connectionsPerAccount = 3

function numbered(sql: string): string {
  let count = 0
  return sql.replaceAll('?', () => `$${++count}`)
}

/** Connects lazily: while the database is unavailable each query fails, and the next one tries again. */
export function openDatabase(url: string, { connections = 10, timeouts = requestTimeouts } = {}): Database {
  const orm = makeOrm(url, { pool: { min: 0, max: connections } }, timeouts)
  const connection = orm.em.getConnection() as PostgreSqlConnection
  const builder = orm.em.getKysely<Tables>()
  const pool = (): Promise<Pool> => connection.getNativeClient()
  const limited = limitByKey(connectionsPerAccount, timeouts.connection)
  const all: Transactions = {
    ...queriesOf(builder, async (query) => (await pool()).query(query)),
    transaction: async (work) => transact(builder, await (await pool()).connect(), work),
  }
  return {
    ...all,
    share: (accountId) => ({
      run: (...of) => limited(accountId, () => all.run(...of)),
      query: (sql, parameters) => limited(accountId, () => all.query(sql, parameters)),
      transaction: (work) => limited(accountId, () => all.transaction(work)),
    }),
    // The ORM ends the pool only if a statement went through the ORM.
    close: async () => (await pool()).end(),
  }
}

async function transact<T>(
  builder: Builder,
  client: PoolClient,
  work: (queries: Queries) => Promise<T>,
): Promise<T> {
  // A connection that breaks while it is idle would otherwise end the process.
  client.on('error', ignore)
  let isUsable = true
  const tracked = async <R>(answer: Promise<R>): Promise<R> => {
    try {
      return await answer
    } catch (error) {
      isUsable &&= leavesUsable(error)
      throw error
    }
  }
  try {
    await tracked(client.query('begin'))
    const result = await work(queriesOf(builder, (query) => tracked(client.query(query))))
    await tracked(client.query('commit'))
    return result
  } catch (error) {
    // Only the first error is reported. A rollback would wait for a statement that has no answer.
    if (isUsable) await tracked(client.query('rollback')).catch(ignore)
    throw error
  } finally {
    client.off('error', ignore)
    client.release(!isUsable)
  }
}

/** Whether PostgreSQL answered and is not a demoted primary, whose connections remain read-only (25006). */
const leavesUsable = (error: unknown): boolean =>
  error instanceof Error && 'severity' in error && (error as { code?: string }).code !== '25006'

type Send = (query: {
  name?: string
  text: string
  values: unknown[]
  query_timeout?: number
}) => Promise<{ rows: Row[] }>

const queriesOf = (builder: Builder, send: Send): Queries => ({
  run: async <Values, Result>(statement: Statement<Values, Result>, values?: Values) => {
    const { text, bind } = statement.compile(builder)
    const { rows } = await send({ name: statement.name, text, values: bind((values ?? {}) as Values) })
    return rows as Result[]
  },
  query: async <T extends Row>(sql: string, values: unknown[] = []) =>
    (await send({ text: numbered(sql), values })).rows as T[],
})

/** The part of `pg` that is used here. */
interface Pool {
  query: Send
  connect(): Promise<PoolClient>
  end(): Promise<void>
}

interface PoolClient {
  query: Send & ((statement: 'begin' | 'commit' | 'rollback') => Promise<unknown>)
  on(event: 'error', listener: () => void): void
  off(event: 'error', listener: () => void): void
  release(destroy: boolean): void
}

/**
 * Demoting a primary closes its connections, so only new ones have to be checked.
 * @throws for a standby, whose data may be outdated
 */
async function refuseStandby(client: PoolClient, timeoutMs: number): Promise<void> {
  const { rows } = await client.query({
    text: 'select pg_is_in_recovery() as standby',
    values: [],
    ...(timeoutMs > 0 && { query_timeout: timeoutMs }),
  })
  if (!rows[0]!.standby) return
  throw Object.assign(new Error('PostgreSQL is a standby or a demoted primary'), {
    code: '25006',
  })
}

const ignore = () => {}

interface TypeParsers {
  setTypeParser(oid: number, parse: (text: string) => unknown): void
}

/** As in the entities, a `timestamptz` is a Date and a `bigint` a number. No value exceeds 2^53. */
function parseTypes(types: TypeParsers): void {
  types.setTypeParser(1184, (text) => new Date(text))
  types.setTypeParser(20, Number)
}

/** The ORM itself, for the migrations. */
export function makeOrm(
  url: string,
  options: object = {},
  timeouts: DatabaseTimeouts = requestTimeouts,
): MikroORM {
  const { host, port, user, password, database, ssl } = parse(url)
  return new MikroORM({
    entities: [...entities],
    dbName: database ?? 'sandlot',
    // A typo in the URL must not create an empty database.
    ensureDatabase: false,
    ...(host ? { host } : {}),
    ...(port ? { port: Number(port) } : {}),
    ...(user ? { user } : {}),
    ...(password ? { password } : {}),
    driverOptions: {
      ...(ssl === undefined ? {} : { ssl }),
      // Also the timeout for a free connection of the pool.
      connectionTimeoutMillis: timeouts.connection,
      query_timeout: timeouts.answer,
      keepAlive: true,
      onPoolCreated: ({ options }: { options: { types: TypeParsers } }) => parseTypes(options.types),
      onConnect: (client: PoolClient) => refuseStandby(client, timeouts.connection),
      application_name: 'sandlot',
      options:
        `-c timezone=UTC -c statement_timeout=${timeouts.statement} -c lock_timeout=${timeouts.lock} ` +
        `-c idle_in_transaction_session_timeout=${timeouts.idle}`,
    },
    ...options,
  })
}
