/**
 * The database of a process: one pool, plain SQL on the paths that are hot or that lock, the
 * entity manager where rows are simply found and written.
 */
import { type EntityManager, MikroORM } from '@mikro-orm/postgresql'
import { parse } from 'pg-connection-string'
import { Account, ApiKey, Sandbox } from './entities.ts'

export type Row = Record<string, unknown>

export interface Queries {
  /** Runs one statement with `?` for each parameter and returns its rows, typed by {@link em}. */
  query<T extends Row = Row>(sql: string, parameters?: unknown[]): Promise<T[]>
  em: EntityManager
}

export interface Database extends Queries {
  /** Commits when `work` resolves, rolls back when it rejects. */
  transaction<T>(work: (queries: Queries) => Promise<T>): Promise<T>
  close(): Promise<void>
}

const entities = [Account, ApiKey, Sandbox]

/** Connects lazily: a database that is away fails each query, and the next one tries again. */
export function openDatabase(url: string, { connections = 10 } = {}): Database {
  const orm = makeOrm(url, { pool: { min: 0, max: connections } })
  return {
    get em() {
      return orm.em.fork()
    },
    // Past the entity manager, which would make another one of itself for each statement.
    query: (sql, parameters) => orm.em.getDriver().execute(sql, parameters),
    transaction: (work) => inTransaction(orm, work),
    close: () => orm.close(true),
  }
}

/**
 * The ORM's own transactions keep their connection for ever when it breaks before the rollback: ten of
 * those and the pool is empty. Those of Kysely below it give it back.
 */
async function inTransaction<T>(orm: MikroORM, work: (queries: Queries) => Promise<T>): Promise<T> {
  const connection = orm.em.getConnection()
  await connection.ensureConnection()
  let failure: { error: unknown } | undefined
  const transaction = connection.getClient().transaction()
  return await transaction
    .execute(async (context) => {
      const em = orm.em.fork()
      em.setTransactionContext(context)
      return await work(queriesOf(em)).catch((error) => {
        failure = { error }
        throw error
      })
    })
    .catch((error) => {
      // Not that the rollback failed as well.
      throw failure ? failure.error : error
    })
}

/** The ORM itself, for the migrations. */
export function makeOrm(url: string, options: object = {}): MikroORM {
  const { host, port, user, password, database, ssl } = parse(url)
  return new MikroORM({
    entities,
    dbName: database ?? 'sandlot',
    ...(host ? { host } : {}),
    ...(port ? { port: Number(port) } : {}),
    ...(user ? { user } : {}),
    ...(password ? { password } : {}),
    driverOptions: {
      ...(ssl === undefined ? {} : { ssl }),
      // Also the wait for one of the pool, when all are in use.
      connectionTimeoutMillis: 5_000,
      query_timeout: 10_000,
      keepAlive: true,
      application_name: 'sandlot',
      // Who freezes in a transaction gives its locks back: a sweep, or an account, waits for nobody.
      options: '-c timezone=UTC -c idle_in_transaction_session_timeout=10000',
    },
    ...options,
  })
}

const queriesOf = (em: EntityManager): Queries => ({
  em,
  query: (sql, parameters) => em.execute(sql, parameters),
})
