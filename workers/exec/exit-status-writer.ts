/**
 * Writes exit statuses into the rows of commands before they are reported, and repeats that while PostgreSQL
 * is unavailable. Only rows with an Idempotency-Key wait for the disk (rows.ts), which costs some 4 ms on a slow disk. So a
 * crash of PostgreSQL may lose an exit status that was reported. Therefore the worker reads each row again, and writes
 * it again if it says that the command runs. The command is `lost` only if this worker dies in those seconds too. An
 * exit status that an API has already reported stays: it has most likely not received this worker's answer.
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
 * Milliseconds until a row is read again. PostgreSQL writes to its disk within three rounds of its WAL writer: 0.6 s
 * unless set otherwise.
 */
const checkAfterMs = 3_000
/** Exit statuses that wait for that check (some 5 MB). Beyond it the oldest are not checked. */
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
      log.warn({ err, exec_id }, 'the end of a command waits for the database'),
    )
  }

  /**
   * Resolves when PostgreSQL has taken the exit status, however long it is unavailable.
   * @returns undefined, or the exit status in the row: an API or worker that took this one for lost wrote it
   */
  async write(end: ExecOutcome): Promise<ExitStatus | undefined> {
    const other = await this.writes.run(end.id, () => recordExit(this.db, end))
    // That may be our own: the answer to the first try was lost.
    if (!other || isSame(other, end)) this.checkLater(end)
    return other
  }

  /** Resolves when PostgreSQL has taken all of them. */
  written = (): Promise<void> => this.writes.idle()

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
      this.log.debug({ err: error, ends: due.length }, 'ends of commands wait for the database')
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
      this.log.info({ exec_id: end.id }, 'an end that the database had lost was written again')
    }
  }
}

type ShownEnding = Pick<ExitStatus, 'status' | 'exit_code'>
const isSame = (a: ShownEnding, b: ShownEnding) => a.status === b.status && a.exit_code === b.exit_code
