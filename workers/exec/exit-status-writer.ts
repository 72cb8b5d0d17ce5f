/**
 * Stores exit statuses in PostgreSQL before they are reported, and retries while PostgreSQL is unavailable.
 * A synchronous commit takes about 4 ms on a slow disk, so only the rows of commands with an Idempotency-Key
 * are committed synchronously (`shared/data/exec-writes.ts`). Because a PostgreSQL crash may lose the other
 * statuses, the worker reads each row again after a few seconds and restores a missing status.
 * The worker never overwrites an exit status stored by the API, because the API has most likely reported that
 * status to the client.
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
 * Delay before a stored exit status is checked. PostgreSQL flushes asynchronous commits within three times
 * `wal_writer_delay`, by default 0.6 s.
 */
const checkAfterMs = 3_000
/**
 * Maximum number of exit statuses waiting to be checked, about 5 MB in total. Beyond that, the oldest are not
 * checked.
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
   * Stores an exit status, and retries until PostgreSQL has committed it.
   * @returns the exit status in the row, if another process assumed that this worker was lost and stored one
   */
  async write(end: ExecOutcome): Promise<ExitStatus | undefined> {
    const other = await this.writes.run(end.id, () => recordExit(this.db, end))
    // The row has this worker's own status if the response to the first attempt was lost.
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
