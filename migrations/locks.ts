import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Maximum time that a migration waits for a lock. Requests queue behind the waiting migration, and would fail
 * after two seconds.
 */
export const lockMs = 500

const isLockConflict = (error: unknown) => /^(55P03|40P01)$/.test((error as { code?: string }).code ?? '')

interface Connection {
  report(line: string): void
  execute(sql: string): Promise<Record<string, unknown>[]>
}

const pauseMs = { initial: 250, max: 5_000 }

/**
 * Runs `work`, and retries it after each lock timeout or deadlock. Waits between attempts, so that blocked
 * requests can run.
 */
export async function retryLocks<T>(work: () => Promise<T>, { report, execute }: Connection): Promise<T> {
  for (let pause = pauseMs.initial; ; pause = Math.min(pause * 2, pauseMs.max)) {
    try {
      return await work()
    } catch (error) {
      if (!isLockConflict(error)) throw error
    }
    const [oldest] = await execute(oldestTransaction)
    report(`waiting for a lock${oldest ? `; oldest open transaction: ${oldest.description}` : ''}`)
    await sleep(pause)
  }
}

const oldestTransaction = `
  select format('PostgreSQL process %s (%s, %s), open for %s s', pid, application_name, state,
                round(extract(epoch from clock_timestamp() - xact_start))) as description
    from pg_stat_activity
   where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null
   order by xact_start limit 1`
