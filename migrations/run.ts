/** Brings the database to the newest migration. Any number of processes may run it at once. */
import { Migrator } from '@mikro-orm/migrations'
import { makeOrm } from '../shared/data/database.ts'
import { advisoryLocks } from '../shared/data/locks.ts'
import { Exec } from './20261121_exec.ts'
import { First } from './20261121_first.ts'
import { Growth } from './20261121_growth.ts'
import { Policies } from './20261121_policies.ts'
import { Pool } from './20261122_pool.ts'
import { Lost } from './20261123_lost.ts'
import { Credentials } from './20261124_credentials.ts'
import { Past } from './20261125_past.ts'
import { FirstPod } from './20261126_first_pod.ts'

const migrationsList = [
  { name: '20261121_first', class: First },
  { name: '20261121_exec', class: Exec },
  { name: '20261121_policies', class: Policies },
  { name: '20261121_growth', class: Growth },
  { name: '20261122_pool', class: Pool },
  { name: '20261123_lost', class: Lost },
  { name: '20261124_credentials', class: Credentials },
  { name: '20261125_past', class: Past },
  { name: '20261126_first_pod', class: FirstPod },
]

/** Errors of the network, or PostgreSQL's: no such user, password or database, or it is starting. */
const noWayIn = /^(E[A-Z_]+|08...|28...|3D000|57P03)$/

/** @returns the names of the migrations that it applied */
export async function migrate(databaseUrl: string): Promise<string[]> {
  const locker = makeOrm(databaseUrl, { pool: { min: 1, max: 1 } })
  const orm = makeOrm(databaseUrl, {
    extensions: [Migrator],
    migrations: { migrationsList, snapshot: false, silent: true },
  })
  try {
    return await locker.em.transactional(async (em) => {
      // MikroORM's migrator takes no lock itself. Held until the transaction ends, also when this process is killed.
      await em.execute('select pg_advisory_xact_lock(?)', [advisoryLocks.migrations])
      const applied = await orm.migrator.up()
      return applied.map(({ name }) => name)
    })
  } finally {
    await Promise.all([orm.close(true), locker.close(true)])
  }
}

if (import.meta.main) {
  const databaseUrl = process.env.DATABASE_URL
  if (!databaseUrl) {
    console.error('DATABASE_URL is not set: postgresql://user:password@host/database')
    process.exit(2)
  }
  try {
    const applied = await migrate(databaseUrl)
    console.log(applied.length === 0 ? 'The database is up to date.' : `Applied ${applied.join(', ')}.`)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (!noWayIn.test(code ?? '')) throw error
    console.error(`Cannot use the database (${message || code}): is it running, and is DATABASE_URL right?`)
    process.exit(1)
  }
}
