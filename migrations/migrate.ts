import { setTimeout as sleep } from 'node:timers/promises'
import { Migrator } from '@mikro-orm/migrations'
import { makeOrm } from '../shared/data/database.ts'
import { advisoryLocks } from '../shared/data/locks.ts'
import { withTimeout } from '../shared/lib/timeout.ts'
import { type ListedMigration, migrationsList } from './list.ts'
import { lockMs, retryLocks } from './locks.ts'
import { Online, type Report } from './online.ts'
import { reportMigrationProgress } from './progress.ts'

/** Thrown if a migration fails. Steps that have completed remain applied, and the next run skips them. */
export class MigrationFailed extends Error {
  readonly migration: string

  constructor(migration: string, cause: Error) {
    super(cause.message, { cause })
    this.migration = migration
  }
}

const lockPollMs = 1_000
/**
 * Timeout for connecting to PostgreSQL. In a new pod, the first packets can be lost, and the resolver retries
 * a DNS query only after 5 s.
 */
const connectMs = 20_000
const closeMs = 3_000

interface MigrateOptions {
  report?: Report
  list?: ListedMigration[]
}

/**
 * Applies migrations. A session-level advisory lock allows only one process to migrate at a time.
 * @returns the names of the applied migrations
 * @throws {MigrationFailed} if a migration fails, with PostgreSQL's error as the cause
 */
export async function migrate(
  databaseUrl: string,
  { report = () => {}, list = migrationsList }: MigrateOptions = {},
): Promise<string[]> {
  const orm = makeOrm(
    databaseUrl,
    {
      pool: { min: 1, max: 1 },
      // A replacement for a lost connection must also hold the lock.
      onCreateConnection: (connection: unknown) => acquireLock(connection as Connection, report),
      extensions: [Migrator],
      migrations: {
        migrationsList: list.map((listed) => ({ name: listed.name, class: withReport(listed, report) })),
        // Online migrations commit step by step, so no transaction may enclose all migrations.
        allOrNothing: false,
        snapshot: false,
        silent: true,
      },
    },
    { connection: connectMs, answer: 0, statement: 0, lock: lockMs, idle: 0 },
  )
  const applied: string[] = []
  let current = ''
  await using _progress = reportMigrationProgress(databaseUrl, (progress) =>
    report(`${current}: ${progress}`),
  )
  try {
    const { migrator } = orm
    migrator.on('migrating', ({ name }) => {
      current = name
      report(`${name}: ${list.find((listed) => listed.name === name)!.description}`)
    })
    migrator.on('migrated', ({ name }) => void applied.push(name))
    const execute = (sql: string) => orm.em.getConnection().execute(sql)
    // Fails if the database does not exist, which the migrator would create.
    await execute('select 1')
    await retryLocks(() => migrator.up(), { report: (line) => report(`${current}: ${line}`), execute })
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

function withReport({ name, class: Base }: ListedMigration, report: Report): ListedMigration['class'] {
  return class extends Base {
    constructor(...args: ConstructorParameters<ListedMigration['class']>) {
      super(...args)
      if (this instanceof Online) this.report = (line) => report(`${name}: ${line}`)
    }
  }
}

interface Connection {
  executeQuery(query: object): Promise<{ rows: { locked: boolean }[] }>
}

/**
 * Acquires the migration lock by polling. A statement that waits for the lock would hold a snapshot, and a
 * concurrent index build by the lock's holder would wait for that snapshot.
 */
async function acquireLock(connection: Connection, report: Report): Promise<void> {
  const tryLock = {
    sql: `select pg_try_advisory_lock(${advisoryLocks.migrations}) as locked`,
    parameters: [],
  }
  for (let isReported = false; ; isReported = true) {
    const { rows } = await connection.executeQuery(tryLock)
    if (rows[0]!.locked) return
    if (!isReported) report('Another process is migrating this database. Waiting for it to finish.')
    await sleep(lockPollMs)
  }
}
