/**
 * Runs the migrations on one connection, which holds a lock of the session as long as it lives: of any number of
 * processes one migrates, and the others wait. It has none of the bounds of requests, since a large table takes time.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Migrator } from '@mikro-orm/migrations'
import { makeOrm } from '../shared/data/database.ts'
import { advisoryLocks } from '../shared/data/locks.ts'
import { withTimeout } from '../shared/lib/timeout.ts'
import { type Listed, migrationsList } from './list.ts'
import { lockMs, retryLocks } from './locks.ts'
import { Online, type Say } from './online.ts'
import { reportMigrationProgress } from './progress.ts'

/** A migration that failed. Its steps until then stay, and are not done again. */
export class MigrationFailed extends Error {
  readonly migration: string

  constructor(migration: string, cause: Error) {
    super(cause.message, { cause })
    this.migration = migration
  }
}

const lookEveryMs = 1_000
/**
 * Milliseconds until there is a connection. The network of a new pod may drop what it sends at first, and a name is asked
 * for once more only after 5 s.
 */
const connectMs = 20_000
/** Milliseconds until a connection that does not close is left to itself. */
const closeMs = 3_000

export interface MigrateOptions {
  /** Receives what is done and how far it is, a line at a time. */
  say?: Say
  /** Oldest first. */
  list?: Listed[]
}

/**
 * @returns the names of the migrations that it applied
 * @throws {MigrationFailed} with PostgreSQL's error as its cause
 */
export async function migrate(
  databaseUrl: string,
  { say = () => {}, list = migrationsList }: MigrateOptions = {},
): Promise<string[]> {
  const orm = makeOrm(
    databaseUrl,
    {
      pool: { min: 1, max: 1 },
      // So no connection migrates that does not hold the lock, whatever became of the one before it.
      onCreateConnection: (connection: unknown) => takeLock(connection as Connection, say),
      extensions: [Migrator],
      migrations: {
        migrationsList: list.map((listed) => ({ name: listed.name, class: telling(listed, say) })),
        // Those that say so commit step by step, so no transaction may be around all.
        allOrNothing: false,
        snapshot: false,
        silent: true,
      },
    },
    { connection: connectMs, answer: 0, statement: 0, lock: lockMs, idle: 0 },
  )
  const applied: string[] = []
  let current = ''
  await using _progress = reportMigrationProgress(databaseUrl, (words) => say(`${current}: ${words}`))
  try {
    const { migrator } = orm
    migrator.on('migrating', ({ name }) => {
      current = name
      say(`${name}: ${list.find((listed) => listed.name === name)!.does}`)
    })
    migrator.on('migrated', ({ name }) => void applied.push(name))
    const execute = (sql: string) => orm.em.getConnection().execute(sql)
    // The migrator would make a database that is not there. This fails first.
    await execute('select 1')
    await retryLocks(() => migrator.up(), { say: (line) => say(`${current}: ${line}`), execute })
    return applied
  } catch (error) {
    throw current && !applied.includes(current) ? new MigrationFailed(current, error as Error) : error
  } finally {
    await withTimeout(
      closeMs,
      orm.close(true).catch(() => {}),
    )
  }
}

function telling({ name, class: Listed }: Listed, say: Say): Listed['class'] {
  return class extends Listed {
    constructor(...args: ConstructorParameters<Listed['class']>) {
      super(...args)
      if (this instanceof Online) this.say = (line) => say(`${name}: ${line}`)
    }
  }
}

/** What we use of Kysely's connection, which the ORM brings along. */
interface Connection {
  executeQuery(query: object): Promise<{ rows: { locked: boolean }[] }>
}

/** Asks again and again. Waiting in PostgreSQL would hold up whoever makes an index concurrently: it would wait for us. */
async function takeLock(connection: Connection, say: Say): Promise<void> {
  const ask = { sql: `select pg_try_advisory_lock(${advisoryLocks.migrations}) as locked`, parameters: [] }
  for (let told = false; ; told = true) {
    const { rows } = await connection.executeQuery(ask)
    if (rows[0]!.locked) return
    if (!told) say('Another process migrates this database. Waiting for it.')
    await sleep(lookEveryMs)
  }
}
