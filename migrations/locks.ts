/** Waits for locks of tables in such a way that nobody waits behind it. */
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Milliseconds that a migration waits for a lock at a time. Requests queue up behind it meanwhile, and wait for two
 * seconds at most.
 */
export const lockMs = 500

/** A lock that did not come within {@link lockMs}, and a deadlock. */
const isHeldUp = (error: unknown) => /^(55P03|40P01)$/.test((error as { code?: string }).code ?? '')

interface Asking {
  say(line: string): void
  execute(sql: string): Promise<Record<string, unknown>[]>
}

const pauseMs = { first: 250, most: 5_000 }

/** Tries until the locks come. Between the tries those pass that wait behind it. */
export async function retryLocks<T>(work: () => Promise<T>, { say, execute }: Asking): Promise<T> {
  for (let pause = pauseMs.first; ; pause = Math.min(pause * 2, pauseMs.most)) {
    try {
      return await work()
    } catch (error) {
      if (!isHeldUp(error)) throw error
    }
    const [oldest] = await execute(oldestTransaction)
    say(`waits for a lock${oldest ? `; the oldest open transaction: ${oldest.words}` : ''}`)
    await sleep(pause)
  }
}

const oldestTransaction = `
  select format('process %s of PostgreSQL (%s, %s) since %s s', pid, application_name, state,
                round(extract(epoch from clock_timestamp() - xact_start))) as words
    from pg_stat_activity
   where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null
   order by xact_start limit 1`
