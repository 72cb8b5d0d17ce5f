/**
 * Deletes the rows of commands that were refused, and repeats that until PostgreSQL answers. Whether it has such a row
 * is not known: the insert may have lost its answer, or wait in PostgreSQL. Such an insert carries a deadline, so the
 * row is gone for good once it is deleted after that deadline. Until then an Idempotency-Key that led to this row is
 * answered with a 503, and not with the exit status of a command that never ran.
 */
import type { Database } from '../../shared/data/database.ts'
import { takeBackExecs } from '../../shared/data/exec-writes.ts'
import { PersistentTasks } from '../../shared/lib/persistent-tasks.ts'
import type { Logger } from '../../shared/platform/log.ts'
import { unavailable } from '../../shared/platform/problem.ts'

const retryMs = 1_000
/** Milliseconds that a command is remembered after its row is gone: a client that saw the row before may ask for it. */
const rememberMs = 60_000

export const notRun = () => unavailable('An earlier try of this command was refused and not run. Try again.')

export class RefusedExecs {
  private readonly db: Database
  private readonly deletions: PersistentTasks
  private readonly refused = new Set<string>()

  constructor(db: Database, log: Logger) {
    this.db = db
    this.deletions = new PersistentTasks(retryMs, (err, exec_id) => {
      if (err !== tooEarly) log.warn({ err, exec_id }, 'the row of a refused command waits for the database')
    })
  }

  has = (execId: string): boolean => this.refused.has(execId)

  /**
   * Resolves when PostgreSQL was asked once, whether it answered or not.
   * @param lastMs PostgreSQL's time from which on no insert can be under way, in milliseconds since 1970; 0 for a row
   *   that is known to be there
   */
  take(execId: string, lastMs = 0): Promise<void> {
    this.refused.add(execId)
    return new Promise((resolve) => {
      const deleteRow = async () => {
        const now = await takeBackExecs(this.db, [execId]).finally(resolve)
        if (now < lastMs) throw tooEarly
      }
      void this.deletions.run(execId, deleteRow).then(() => {
        setTimeout(() => this.refused.delete(execId), rememberMs).unref()
      })
    })
  }

  /** Resolves when no row is left to delete. */
  done = (): Promise<void> => this.deletions.idle()

  close = (): void => this.deletions.close()
}

/** An insert that PostgreSQL has yet to run could still make the row. */
const tooEarly = new Error('an insert may be under way')
