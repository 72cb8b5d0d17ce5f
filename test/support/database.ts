import { randomBytes } from 'node:crypto'
import { inject } from 'vitest'
import { type Database, openDatabase, requestTimeouts } from '../../shared/data/database.ts'

export interface TestDatabase {
  url: string
  name: string
  /** URL for a superuser. */
  server: string
}

/**
 * Runs the migrations. Imports them dynamically, because only the file that creates the template needs them.
 */
const migrate = async (url: string) => (await import('../../migrations/migrate.ts')).migrate(url)

const template = 'sandlot_template'
/** Key of the advisory lock under which one of the concurrent test files creates the template. */
const lock = 7_263_002

/**
 * Creates a database by copying a migrated template, which is created once per run.
 * @param server another server, whose database is migrated instead
 */
export async function makeDatabase(server?: string): Promise<TestDatabase> {
  if (server) {
    await migrate(server)
    return { url: server, name: 'sandlot', server }
  }
  const shared = inject('services').postgres.url
  const name = `world_${randomBytes(6).toString('hex')}`
  await asAdmin(shared, async (admin) => {
    await admin.transaction(async (locked) => {
      await locked.query('select pg_advisory_xact_lock(?)', [lock])
      const [found] = await admin.query('select from pg_database where datname = ?', [template])
      if (found) return
      await admin.query(`create database ${template}_new`)
      await migrate(otherDatabase(shared, `${template}_new`))
      await admin.query(`alter database ${template}_new rename to ${template}`)
    })
    await admin.query(`create database ${name} template ${template}`)
  })
  const url = otherDatabase(shared, name)
  await asAdmin(url, (db) => db.query('update installation set id = gen_random_uuid()::text'))
  return { url, name, server: shared }
}

/**
 * Drops a database.
 * @throws {Error} listing open connections, if any remain
 */
export async function dropDatabase({ name, server }: TestDatabase): Promise<void> {
  if (name === 'sandlot') return
  await asAdmin(server, async (admin) => {
    // PostgreSQL waits 5 s for connections of processes that have just exited.
    await admin.query(`drop database ${name}`).catch(async (cause) => {
      const open = await admin.query('select pid, state, query from pg_stat_activity where datname = ?', [
        name,
      ])
      await admin.query(`drop database ${name} with (force)`)
      throw new Error(`open connections remain: ${JSON.stringify(open)}`, { cause })
    })
  })
}

const otherDatabase = (url: string, name: string) => url.replace(/\/\/\/[^?]*/, `///${name}`)

async function asAdmin(url: string, work: (db: Database) => Promise<unknown>): Promise<void> {
  // No timeouts, because processes wait while one creates the template.
  const timeouts = { ...requestTimeouts, answer: 0, statement: 0, lock: 0, idle: 0 }
  const db = openDatabase(url, { connections: 2, timeouts })
  try {
    await work(db)
  } finally {
    await db.close()
  }
}
