/**
 * Connects to PostgreSQL. The ORM creates the connection pool and runs migrations. Statements run directly on
 * the pool, because the ORM's entity manager takes longer than a query.
 */
import { MikroORM, type PostgreSqlConnection } from '@mikro-orm/postgresql'
import { parse } from 'pg-connection-string'
import { limitByKey } from '../lib/limit-by-key.ts'
import { entities, type Tables } from './entities.ts'
import { PipelinedReads } from './pipelined-reads.ts'
import { leavesUsable, type Pool, type PoolClient, type Row, type Send } from './pool.ts'
import type { Builder, Statement, ValuesOf } from './statement.ts'

export interface Queries {
  run<Values, Result>(statement: Statement<Values, Result>, ...values: ValuesOf<Values>): Promise<Result[]>
  /** Runs plain SQL with a `?` for each parameter. Only tests and benchmarks use this method. */
  query<T extends Row = Row>(sql: string, parameters?: unknown[]): Promise<T[]>
}

export interface Transactions extends Queries {
  /** Runs a transaction. Statements that `work` has not awaited are sent together with the commit. */
  transaction<T>(work: (queries: Queries) => Promise<T>): Promise<T>
}

export interface Database extends Transactions {
  /**
   * Returns a handle for statements that may wait for a lock on an account's row. A locked row does not delay
   * other accounts, because each account can use only a few connections through its handle. Transactions of
   * the same account run one after another.
   */
  share(accountId: string): Transactions
  close(): Promise<void>
}

/** Timeouts in milliseconds. 0 disables a timeout. */
interface DatabaseTimeouts {
  /** Maximum time to open a connection, or to wait for a free one in the pool. */
  connection: number
  answer: number
  /** Maximum duration of a statement, after which PostgreSQL cancels it. */
  statement: number
  lock: number
  /** Maximum pause within a transaction, after which PostgreSQL closes the connection. */
  idle: number
}

/**
 * The default timeouts. `statement` is shorter than `answer`, the client's timeout, so that PostgreSQL
 * cancels a statement before the client reports a failure. `idle` frees the locks of a frozen process.
 */
export const requestTimeouts: DatabaseTimeouts = {
  connection: 5_000,
  answer: 10_000,
  statement: 8_000,
  lock: 2_000,
  idle: 10_000,
}

const connectionsPerAccount = 3

function numbered(sql: string): string {
  let count = 0
  return sql.replaceAll('?', () => `$${++count}`)
}

/**
 * Returns a handle for the database. Connections are opened on demand, so queries succeed again after an
 * outage.
 */
export function openDatabase(url: string, { connections = 10, timeouts = requestTimeouts } = {}): Database {
  const orm = makeOrm(url, { pool: { min: 0, max: connections } }, timeouts)
  const connection = orm.em.getConnection() as PostgreSqlConnection
  const builder = orm.em.getKysely<Tables>()
  const pool = (): Promise<Pool> => connection.getNativeClient()
  const limited = limitByKey(connectionsPerAccount, timeouts.connection)
  // Most of an account's transactions lock its row, so a second one would only hold a connection and wait.
  const serialized = limitByKey(1, timeouts.connection)
  const reads = new PipelinedReads(async () => (await pool()).connect())
  const all: Transactions = {
    ...queriesOf(builder, async (query) => (await pool()).query(query), reads.send),
    transaction: async (work) => transact(builder, await (await pool()).connect(), work),
  }
  return {
    ...all,
    share: (accountId) => ({
      run: (...of) => limited(accountId, () => all.run(...of)),
      query: (sql, parameters) => limited(accountId, () => all.query(sql, parameters)),
      transaction: (work) => serialized(accountId, () => limited(accountId, () => all.transaction(work))),
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
  let isUsable = true
  let failure: unknown
  const tracked = async <R>(result: Promise<R>): Promise<R> => {
    try {
      return await result
    } catch (error) {
      isUsable &&= leavesUsable(error)
      // PostgreSQL refuses the statements after a failed one, some of which may have been sent together with it.
      failure ??= error
      throw failure
    }
  }
  try {
    await tracked(client.query('begin'))
    const result = await work(queriesOf(builder, (query) => tracked(client.query(query))))
    await tracked(client.query('commit'))
    // After a failed statement, PostgreSQL rolls back instead, and reports no error.
    if (failure !== undefined) throw failure
    return result
  } catch (error) {
    // Reports only the first error. On an unusable connection, the rollback would wait for the unfinished
    // statement.
    if (isUsable) await tracked(client.query('rollback')).catch(ignore)
    throw error
  } finally {
    client.release(!isUsable)
  }
}

const queriesOf = (builder: Builder, send: Send, sendRead = send): Queries => ({
  run: async <Values, Result>(statement: Statement<Values, Result>, values?: Values) => {
    const { text, bind, isRead } = statement.compile(builder)
    const query = { name: statement.name, text, values: bind((values ?? {}) as Values) }
    const { rows } = await (isRead ? sendRead : send)(query)
    return rows as Result[]
  },
  query: async <T extends Row>(sql: string, values: unknown[] = []) =>
    (await send({ text: numbered(sql), values })).rows as T[],
})

/** @throws if the server is a standby, whose data may be outdated */
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

/** Parses `timestamptz` as Date and `bigint` as number. No `bigint` value exceeds 2^53. */
function parseTypes(types: TypeParsers): void {
  types.setTypeParser(1184, (text) => new Date(text))
  types.setTypeParser(20, Number)
}

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
      // Lets connections send a query before earlier queries have finished.
      pipeline: true,
      onConnect: (client: PoolClient) => {
        // Without a listener, a connection that breaks while idle would crash the process.
        client.on('error', ignore)
        return refuseStandby(client, timeouts.connection)
      },
      application_name: 'sandlot',
      options:
        `-c timezone=UTC -c statement_timeout=${timeouts.statement} -c lock_timeout=${timeouts.lock} ` +
        `-c idle_in_transaction_session_timeout=${timeouts.idle}`,
    },
    ...options,
  })
}
