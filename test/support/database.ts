/** A migrated database for one world: a copy of a template that each run makes once. */
import { randomBytes } from 'node:crypto'
import { inject } from 'vitest'
import { type Database, openDatabase, requestTimeouts } from '../../shared/data/database.ts'

export interface TestDatabase {
  url: string
  name: string
  /** Where it lives, as its superuser. */
  server: string
}

/** Loaded only where a database is made anew, by one file of many. */
const migrate = async (url: string) => (await import('../../migrations/migrate.ts')).migrate(url)

const template = 'sandlot_template'
/** A number of our own for pg_advisory_lock: test files run at once. */
const lock = 7_263_002

/** @param server another one than the run's: it gets a database without a template */
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

/** @throws names the connections to it that stayed open */
export async function dropDatabase({ name, server }: TestDatabase): Promise<void> {
  if (name === 'sandlot') return
  await asAdmin(server, async (admin) => {
    // PostgreSQL waits 5 s for the connections of processes that have just ended.
    await admin.query(`drop database ${name}`).catch(async (cause) => {
      const open = await admin.query('select pid, state, query from pg_stat_activity where datname = ?', [
        name,
      ])
      await admin.query(`drop database ${name} with (force)`)
      throw new Error(`connections were left behind: ${JSON.stringify(open)}`, { cause })
    })
  })
}

const otherDatabase = (url: string, name: string) => url.replace(/\/\/\/[^?]*/, `///${name}`)

async function asAdmin(url: string, work: (db: Database) => Promise<unknown>): Promise<void> {
  // The process that makes the template keeps the others waiting.
  const timeouts = { ...requestTimeouts, answer: 0, statement: 0, lock: 0, idle: 0 }
  const db = openDatabase(url, { connections: 2, timeouts })
  try {
    await work(db)
  } finally {
    await db.close()
  }
}
