/** Tells how far PostgreSQL is with an index, which one statement makes. */
import { sql } from 'kysely'
import { openDatabase } from '../shared/data/database.ts'
import { statement } from '../shared/data/statement.ts'

const lookEveryMs = 2_000

const indexes = statement()(
  'progress of indexes',
  () => sql<{ words: string }>`
  select concat(phase,
                case when phase like 'waiting%' then ''
                     when blocks_total > 0 then format(', %s %% of the blocks', 100 * blocks_done / blocks_total)
                     when tuples_total > 0 then format(', %s %% of the rows', 100 * tuples_done / tuples_total) end,
                case when current_locker_pid > 0 then format(', process %s of PostgreSQL', current_locker_pid) end)
         as words
    from pg_stat_progress_create_index where datname = current_database()`,
)

/** @param say told whenever there is news, on a connection of its own */
export function reportMigrationProgress(databaseUrl: string, say: (words: string) => void): AsyncDisposable {
  const db = openDatabase(databaseUrl, { connections: 1 })
  let told = ''
  const look = async () => {
    const [index] = await db.run(indexes)
    if (index && index.words !== told) say(index.words)
    told = index?.words ?? ''
  }
  const timer = setInterval(() => void look().catch(() => {}), lookEveryMs)
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      await db.close()
    },
  }
}
