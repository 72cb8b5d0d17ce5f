/**
 * Takes back the rows of commands that were refused, and tries again until PostgreSQL answers. Whether it has such a row
 * is not known: the insert may have lost its answer, or wait in PostgreSQL. Such an insert carries a deadline, so the
 * row is gone for good once it is deleted after that deadline. Until then an Idempotency-Key that led to this row is
 * answered with a 503, and not with the end of a command that never ran.
 */
import type { Database } from '../../shared/data/database.ts'
import { takeBackExecs } from '../../shared/data/exec-writes.ts'
import type { Logger } from '../../shared/platform/log.ts'
import { unavailable } from '../../shared/platform/problem.ts'

const tryEveryMs = 1_000
/** Milliseconds that a command is remembered after its row is gone: a client that saw the row before may ask for it. */
const rememberMs = 60_000

/** For a client that asks for a command whose row is taken back. */
export const notRun = () => unavailable('An earlier try of this command was refused and not run. Try again.')

export class TakenBack {
  private readonly db: Database
  private readonly log: Logger
  /** By id: PostgreSQL's time, in milliseconds since 1970, from which on no insert of this row can be under way. */
  private readonly waiting = new Map<string, number>()
  private readonly gone = new Set<string>()
  private trying: Promise<void> | undefined
  private timer: NodeJS.Timeout | undefined
  private isClosed = false

  constructor(db: Database, log: Logger) {
    this.db = db
    this.log = log
  }

  has = (execId: string): boolean => this.waiting.has(execId) || this.gone.has(execId)

  /**
   * Resolves when PostgreSQL was asked once, whether it answered or not.
   * @param lastMs PostgreSQL's time from which on no insert can be under way; 0 for a row that is known to be there
   */
  async take(execId: string, lastMs = 0): Promise<void> {
    this.waiting.set(execId, lastMs)
    // A try that is under way does not know this one.
    await this.trying
    await this.tryAll()
  }

  /** Resolves when nothing is left to take back. */
  async done(): Promise<void> {
    while (!this.isClosed && this.waiting.size > 0) {
      await new Promise((resolve) => setTimeout(resolve, tryEveryMs).unref())
    }
  }

  close(): void {
    this.isClosed = true
    clearTimeout(this.timer)
  }

  private async tryAll(): Promise<void> {
    this.trying ??= this.forget([...this.waiting.keys()]).finally(() => {
      this.trying = undefined
    })
    await this.trying
    if (this.isClosed || this.waiting.size === 0) return
    this.timer ??= setTimeout(() => {
      this.timer = undefined
      void this.tryAll()
    }, tryEveryMs).unref()
  }

  private async forget(execIds: string[]): Promise<void> {
    try {
      const now = await takeBackExecs(this.db, execIds)
      for (const id of execIds) if (now >= this.waiting.get(id)!) this.settle(id)
    } catch (error) {
      this.log.warn(
        { err: error, commands: execIds.length },
        'rows of refused commands wait for the database',
      )
    }
  }

  private settle(execId: string): void {
    this.waiting.delete(execId)
    this.gone.add(execId)
    setTimeout(() => this.gone.delete(execId), rememberMs).unref()
  }
}
