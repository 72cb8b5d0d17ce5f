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
    ...queriesOf(() => orm.em.fork()),
    transaction: (work) => orm.em.fork().transactional((em) => work(queriesOf(() => em))),
    close: () => orm.close(true),
  }
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
      connectionTimeoutMillis: 2_000,
      query_timeout: 10_000,
      keepAlive: true,
      application_name: 'sandlot',
      options: '-c timezone=UTC',
    },
    ...options,
  })
}

function queriesOf(fork: () => EntityManager): Queries {
  return {
    get em() {
      return fork()
    },
    query: (sql, parameters = []) => fork().execute(sql, parameters),
  }
}
