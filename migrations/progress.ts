import { sql } from 'kysely'
import { openDatabase } from '../shared/data/database.ts'
import { rows } from '../shared/data/statement.ts'

const pollMs = 2_000

const indexes = rows()(
  'progress of indexes',
  () => sql<{ progress: string }>`
  select concat(phase,
                case when phase like 'waiting%' then ''
                     when blocks_total > 0 then format(', %s %% of the blocks', 100 * blocks_done / blocks_total)
                     when tuples_total > 0 then format(', %s %% of the rows', 100 * tuples_done / tuples_total) end,
                case when current_locker_pid > 0 then format(', PostgreSQL process %s', current_locker_pid) end)
         as progress
    from pg_stat_progress_create_index where datname = current_database()`,
)

/**
 * Reports the progress of index builds during a migration. Polls over a second connection, because an index
 * build occupies the first one.
 */
export function reportMigrationProgress(
  databaseUrl: string,
  report: (progress: string) => void,
): AsyncDisposable {
  const db = openDatabase(databaseUrl, { connections: 1 })
  let reported = ''
  const poll = async () => {
    const [index] = await indexes(db)
    if (index && index.progress !== reported) report(index.progress)
    reported = index?.progress ?? ''
  }
  const timer = setInterval(() => void poll().catch(() => {}), pollMs)
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      await db.close()
    },
  }
}
