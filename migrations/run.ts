/**
 * `npm run migrate`: applies all pending migrations while the old version keeps running.
 * With `--wait SECONDS`, it first waits up to that many seconds for PostgreSQL to accept connections.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { describeFailure, isStarting } from './failure.ts'
import { migrate } from './migrate.ts'

const databaseUrl = process.env.DATABASE_URL
if (!databaseUrl) {
  console.error('DATABASE_URL is not set. Set it, for example to postgresql://user:password@host/database.')
  process.exit(2)
}
const { wait } = parseArgs({ options: { wait: { type: 'string', default: '0' } } }).values
const waitUntil = Date.now() + Number(wait) * 1000
if (!/^\d+$/.test(wait)) {
  console.error(`--wait must be a whole number of seconds, but is ${JSON.stringify(wait)}.`)
  process.exit(2)
}

async function migrateOnceStarted(url: string): Promise<string[]> {
  for (;;) {
    try {
      return await migrate(url, { report: (line) => console.error(line) })
    } catch (error) {
      const canWait = isStarting(error) && Date.now() < waitUntil
      if (!canWait) throw error
      console.error(`Waiting for the database: ${describeFailure(error)}`)
      await sleep(2_000)
    }
  }
}

try {
  const applied = await migrateOnceStarted(databaseUrl)
  console.log(applied.length === 0 ? 'The database is up to date.' : `Applied ${applied.join(', ')}.`)
} catch (error) {
  console.error(describeFailure(error))
  process.exit(1)
}
