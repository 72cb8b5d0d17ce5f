/**
 * Stores exit statuses in PostgreSQL before they are reported, and retries while PostgreSQL is unavailable.
 *
 * A synchronous commit costs about 4 ms on a slow disk, so only rows with an Idempotency-Key are committed
 * synchronously (`rows.ts`). A PostgreSQL crash may therefore lose a reported exit status. To repair this,
 * the worker reads each row again after a few seconds, and stores the exit status again if it is missing.
 *
 * If the API has already stored an exit status, the worker does not overwrite it. The API most likely never
 * received this worker's response, so it has reported its own status to the client.
 */

import type { ExecOutcome } from '../../shared/contract/exec.ts'
import type { Database } from '../../shared/data/database.ts'
import { writeExitUnconditionally } from '../../shared/data/exec-writes.ts'
import { findRunning } from '../../shared/data/execs.ts'
import { PersistentTasks } from '../../shared/lib/persistent-tasks.ts'
import type { Logger } from '../../shared/platform/log.ts'
import type { ExitStatus } from './command.ts'
import { recordExit } from './rows.ts'

const retryMs = 1_000
/**
 * How long the worker waits before it reads a row again. PostgreSQL flushes asynchronous commits within three
 * times `wal_writer_delay`, 0.6 s by default.
 */
const checkAfterMs = 3_000
/**
 * Maximum number of exit statuses waiting to be checked, about 5 MB in total. Above the limit, the oldest are
 * not checked.
 */
const maxUnchecked = 10_000

export class ExitStatusWriter {
  private readonly db: Database
  private readonly log: Logger
  private readonly writes: PersistentTasks
  private readonly unchecked = new Map<string, { end: ExecOutcome; writtenAt: number }>()
  private timer: NodeJS.Timeout | undefined

  constructor(db: Database, log: Logger) {
    this.db = db
    this.log = log
    this.writes = new PersistentTasks(retryMs, (err, exec_id) =>
      log.warn(
        { err, exec_id },
        'an exit status cannot be written, because the database is unavailable; retrying',
      ),
    )
  }

  /**
   * Stores the exit status, and retries until PostgreSQL has committed it.
   * @returns the exit status in the row, if another process stored one because it assumed that this worker
   *   was lost
   */
  async write(end: ExecOutcome): Promise<ExitStatus | undefined> {
    const other = await this.writes.run(end.id, () => recordExit(this.db, end))
    // The row contains this worker's own exit status if the response to its first attempt was lost.
    if (!other || isSame(other, end)) this.checkLater(end)
    return other
  }

  idle = (): Promise<void> => this.writes.idle()

  close(): void {
    this.writes.close()
    clearInterval(this.timer)
    this.unchecked.clear()
  }

  private checkLater(end: ExecOutcome): void {
    if (this.writes.isClosed) return
    this.unchecked.set(end.id, { end, writtenAt: performance.now() })
    const [oldest] = this.unchecked.keys()
    if (this.unchecked.size > maxUnchecked) this.unchecked.delete(oldest!)
    this.timer ??= setInterval(() => void this.check(), retryMs).unref()
  }

  private async check(): Promise<void> {
    const latest = performance.now() - checkAfterMs
    const due = [...this.unchecked.values()].filter(({ writtenAt }) => writtenAt < latest)
    try {
      if (due.length > 0) await this.restoreMissing(due.map(({ end }) => end))
    } catch (error) {
      this.log.debug({ err: error, execs: due.length }, 'exit statuses cannot be checked; retrying')
    }
    if (this.unchecked.size > 0) return
    clearInterval(this.timer)
    this.timer = undefined
  }

  private async restoreMissing(due: ExecOutcome[]): Promise<void> {
    const missing = await findRunning(
      this.db,
      due.map(({ id }) => id),
    )
    for (const end of due) {
      const isRestored = missing.has(end.id) && (await writeExitUnconditionally(this.db, end))
      this.unchecked.delete(end.id)
      if (!isRestored) continue
      this.checkLater(end)
      this.log.info({ exec_id: end.id }, 'an exit status lost by the database was written again')
    }
  }
}

type ShownEnding = Pick<ExitStatus, 'status' | 'exit_code'>
const isSame = (a: ShownEnding, b: ShownEnding) => a.status === b.status && a.exit_code === b.exit_code
