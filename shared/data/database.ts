/**
 * The database of a process: one pool, plain SQL whose parameters are always bound. The ORM makes the pool and runs the
 * migrations. Requests bypass its entity manager, which costs more than the query itself.
 */
import { MikroORM, type PostgreSqlConnection } from '@mikro-orm/postgresql'
import { parse } from 'pg-connection-string'
import { Sandbox } from './entities.ts'

export type Row = Record<string, unknown>

/** A statement that each connection plans once: see {@link prepare}. */
export interface Statement {
  readonly name: string
  readonly text: string
}

export interface Queries {
  /** Runs one statement, with `?` for each parameter. */
  query<T extends Row = Row>(sql: string, parameters?: unknown[]): Promise<T[]>
  /** Runs a statement of a hot path. */
  run<T extends Row = Row>(statement: Statement, parameters: unknown[]): Promise<T[]>
}

export interface Database extends Queries {
  /** Commits when `work` resolves, rolls back when it rejects. */
  transaction<T>(work: (queries: Queries) => Promise<T>): Promise<T>
  close(): Promise<void>
}

/**
 * Makes a statement that each connection plans once: planning costs more than running where an index leads to the row.
 * It must name its columns, because a plan for `*` fails once a migration has added one.
 * @param name unique among all statements of the process
 * @param sql with `?` for each parameter
 */
export const prepare = (name: string, sql: string): Statement => ({ name, text: numbered(sql) })

function numbered(sql: string): string {
  let count = 0
  return sql.replaceAll('?', () => `$${++count}`)
}

/** Connects lazily: a database that is away fails each query, and the next one tries again. */
export function openDatabase(url: string, { connections = 10 } = {}): Database {
  const orm = makeOrm(url, { pool: { min: 0, max: connections } })
  const connection = orm.em.getConnection() as PostgreSqlConnection
  const pool = (): Promise<Pool> => connection.getNativeClient()
  return {
    ...queriesOf(async (query) => (await pool()).query(query)),
    async transaction(work) {
      const client = await (await pool()).connect()
      // A connection that breaks while it is idle would otherwise end the process.
      client.on('error', ignore)
      let broken: unknown
      try {
        await client.query('begin')
        const result = await work(queriesOf((query) => client.query(query)))
        await client.query('commit')
        return result
      } catch (error) {
        // The first error is the one that tells what went wrong.
        await client.query('rollback').catch((second) => {
          broken = second
        })
        throw error
      } finally {
        client.off('error', ignore)
        client.release(broken !== undefined)
      }
    },
    close: () => orm.close(true),
  }
}

type Send = (query: { name?: string; text: string; values: unknown[] }) => Promise<{ rows: Row[] }>

function queriesOf(send: Send): Queries {
  const run = async <T extends Row>(statement: { name?: string; text: string }, values: unknown[]) =>
    (await send({ ...statement, values })).rows as T[]
  return { run, query: (sql, values = []) => run({ text: numbered(sql) }, values) }
}

/** What we use of `pg`, which the ORM brings along. */
interface Pool {
  query: Send
  connect(): Promise<PoolClient>
}

interface PoolClient {
  query: Send & ((statement: 'begin' | 'commit' | 'rollback') => Promise<unknown>)
  on(event: 'error', listener: () => void): void
  off(event: 'error', listener: () => void): void
  release(destroy: boolean): void
}

const ignore = () => {}

/** The ORM itself, for the migrations. */
export function makeOrm(url: string, options: object = {}): MikroORM {
  const { host, port, user, password, database, ssl } = parse(url)
  return new MikroORM({
    entities: [Sandbox],
    dbName: database ?? 'sandlot',
    ...(host ? { host } : {}),
    ...(port ? { port: Number(port) } : {}),
    ...(user ? { user } : {}),
    ...(password ? { password } : {}),
    driverOptions: {
      ...(ssl === undefined ? {} : { ssl }),
      // Also bounds the wait for a connection of the pool, when all are in use.
      connectionTimeoutMillis: 5_000,
      query_timeout: 10_000,
      keepAlive: true,
      application_name: 'sandlot',
      // A process that freezes in a transaction loses its locks, so that a sweep or an account does not wait for it.
      options: '-c timezone=UTC -c idle_in_transaction_session_timeout=10000',
    },
    ...options,
  })
}
