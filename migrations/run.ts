/** `npm run migrate`: applies all pending migrations. The old version of Sandlot can keep running. */
import { describeFailure } from './failure.ts'
import { migrate } from './migrate.ts'

const databaseUrl = process.env.DATABASE_URL
if (!databaseUrl) {
  console.error('DATABASE_URL is not set. Set it, for example to postgresql://user:password@host/database.')
  process.exit(2)
}
try {
  const applied = await migrate(databaseUrl, { report: (line) => console.error(line) })
  console.log(applied.length === 0 ? 'The database is up to date.' : `Applied ${applied.join(', ')}.`)
} catch (error) {
  console.error(describeFailure(error))
  process.exit(1)
}
