/**
 * Writes how commands ended into their rows, before anybody is told, and tries again while PostgreSQL is away. Only rows
 * with an Idempotency-Key wait for the disk (rows.ts): on a slow disk that costs some 4 ms each. So a crash of PostgreSQL
 * may lose an end that was told. Therefore the worker looks at each end once more, and writes it again if the row says that
 * the command runs. The command is `lost` only if this worker dies in those seconds too. If an API has told a client
 * another end by then, that one stands: it has most likely not got this worker's answer.
 */

import type { ExecEnd } from '../../shared/contract/exec.ts'
import type { Database } from '../../shared/data/database.ts'
import { findRunning } from '../../shared/data/execs.ts'
import type { Logger } from '../../shared/platform/log.ts'
import type { Ending } from './command.ts'
import { recordEnd, recordToldEnd } from './rows.ts'

interface UnwrittenEnd {
  end: ExecEnd
  /** Undefined until PostgreSQL has taken it. */
  writtenAt: number | undefined
  isUnderWay: boolean
  tell: (other: Ending | undefined) => void
}

const lookEveryMs = 1_000
/**
 * Milliseconds until the second look. PostgreSQL writes to its disk within three rounds of its WAL writer: 0.6 s unless
 * set otherwise.
 */
const heldAfterMs = 3_000
/** At most this many ends wait for their second look (some 5 MB). Beyond it the oldest are given up. */
const most = 10_000

export class Ends {
  private readonly db: Database
  private readonly log: Logger
  private readonly kept = new Map<string, UnwrittenEnd>()
  private timer: NodeJS.Timeout | undefined
  private isClosed = false

  constructor(db: Database, log: Logger) {
    this.db = db
    this.log = log
  }

  /**
   * Resolves when PostgreSQL has taken the end, however long it is away.
   * @returns undefined, or the end that stands there already: an API or worker that took this one for lost wrote it
   */
  async write(end: ExecEnd): Promise<Ending | undefined> {
    const { promise, resolve } = Promise.withResolvers<Ending | undefined>()
    const one: UnwrittenEnd = { end, writtenAt: undefined, isUnderWay: false, tell: resolve }
    this.kept.set(end.id, one)
    this.forgetOldest()
    void this.tryToWrite(one).then(() => this.lookLater())
    return await promise
  }

  /** Resolves when PostgreSQL has taken all of them. */
  async written(): Promise<void> {
    while (!this.isClosed && this.unwritten().length > 0) {
      await new Promise((resolve) => setTimeout(resolve, lookEveryMs).unref())
    }
  }

  close(): void {
    this.isClosed = true
    clearTimeout(this.timer)
  }

  private unwritten(): UnwrittenEnd[] {
    return [...this.kept.values()].filter(({ writtenAt }) => writtenAt === undefined)
  }

  private async tryToWrite(one: UnwrittenEnd): Promise<void> {
    if (one.isUnderWay) return
    one.isUnderWay = true
    try {
      const other = await recordEnd(this.db, one.end)
      one.writtenAt = performance.now()
      // The end that stands there may be our own: the answer to the first try was lost.
      if (other && !isSame(other, one.end)) this.kept.delete(one.end.id)
      one.tell(other)
    } catch (error) {
      this.log.warn({ err: error, exec_id: one.end.id }, 'the end of a command waits for the database')
    } finally {
      one.isUnderWay = false
    }
  }

  private async look(): Promise<void> {
    this.timer = undefined
    await Promise.all(this.unwritten().map((one) => this.tryToWrite(one)))
    const oldest = performance.now() - heldAfterMs
    const due = [...this.kept.values()].filter(
      ({ writtenAt }) => writtenAt !== undefined && writtenAt < oldest,
    )
    await this.restoreMissing(due).catch((error) =>
      this.log.debug({ err: error, ends: due.length }, 'ends of commands wait for the database'),
    )
    this.lookLater()
  }

  private lookLater(): void {
    if (this.isClosed || this.kept.size === 0) return
    this.timer ??= setTimeout(() => void this.look(), lookEveryMs).unref()
  }

  private async restoreMissing(due: UnwrittenEnd[]): Promise<void> {
    if (due.length === 0) return
    const ids = due.map(({ end }) => end.id)
    const missing = await findRunning(this.db, ids)
    for (const one of due) {
      if (!missing.has(one.end.id) || !(await recordToldEnd(this.db, one.end))) this.kept.delete(one.end.id)
      else {
        one.writtenAt = performance.now()
        this.log.info({ exec_id: one.end.id }, 'an end that the database had lost was written again')
      }
    }
  }

  private forgetOldest(): void {
    if (this.kept.size <= most) return
    const oldest = [...this.kept.values()].find(({ writtenAt }) => writtenAt !== undefined)
    if (oldest) this.kept.delete(oldest.end.id)
  }
}

type ShownEnding = Pick<Ending, 'status' | 'exit_code'>
const isSame = (a: ShownEnding, b: ShownEnding) => a.status === b.status && a.exit_code === b.exit_code
