/**
 * Deletes the rows of commands that were refused before they ran, and retries while PostgreSQL is
 * unavailable.
 * The insert of such a row may still be running, so the deletion is repeated until the insert's deadline has
 * passed. Until then, a request with the same Idempotency-Key receives 503.
 */
import type { Database } from '../../shared/data/database.ts'
import { takeBackExecs } from '../../shared/data/exec-writes.ts'
import { PersistentTasks } from '../../shared/lib/persistent-tasks.ts'
import type { Logger } from '../../shared/platform/log.ts'
import { unavailable } from '../../shared/platform/problem.ts'

const retryMs = 1_000
/**
 * How long a refused command is remembered after its row is deleted. A process that read the row earlier may
 * still request the command, and should receive `unavailable` instead of `exec_not_found`.
 */
const rememberMs = 60_000

export const notRun = () =>
  unavailable('An earlier attempt to start this command failed, and the command was not run. Try again.')

export class RefusedExecs {
  private readonly db: Database
  private readonly deletions: PersistentTasks
  private readonly refused = new Set<string>()

  constructor(db: Database, log: Logger) {
    this.db = db
    this.deletions = new PersistentTasks(retryMs, (err, exec_id) => {
      if (err !== tooEarly)
        log.warn({ err, exec_id }, 'the row of a refused command cannot be deleted; retrying')
    })
  }

  has = (execId: string): boolean => this.refused.has(execId)

  /**
   * Deletes a command's row. Resolves after the first attempt; if it fails, retries continue in the
   * background.
   * @param lastMs PostgreSQL time, in milliseconds since 1970, after which the insert can no longer be
   *   running; 0 if the row is known to exist
   */
  deleteRow(execId: string, lastMs = 0): Promise<void> {
    this.refused.add(execId)
    return new Promise((resolve) => {
      const tryDelete = async () => {
        const now = await takeBackExecs(this.db, [execId]).finally(resolve)
        if (now < lastMs) throw tooEarly
      }
      void this.deletions.run(execId, tryDelete).then(() => {
        setTimeout(() => this.refused.delete(execId), rememberMs).unref()
      })
    })
  }

  idle = (): Promise<void> => this.deletions.idle()

  close = (): void => this.deletions.close()
}

const tooEarly = new Error('an insert may still be running')
