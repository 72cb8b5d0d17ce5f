/**
 * Base class of migrations that change large tables while the old version of Sandlot keeps running.
 *
 * Each step commits separately and is idempotent, so the next run continues after the last completed step.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Migration } from '@mikro-orm/migrations'
import { retryLocks } from './locks.ts'

export type Report = (line: string) => void

const batchMs = 200
const batchRows = { initial: 1_000, min: 100, max: 20_000 }
const reportEveryMs = 5_000

export abstract class Online extends Migration {
  report: Report = () => {}

  override isTransactional(): boolean {
    return false
  }

  abstract override up(): Promise<void>

  /** Runs statements in one transaction. Once they have acquired their locks, they must finish quickly. */
  protected async change(...statements: string[]): Promise<void> {
    // PostgreSQL runs all statements of one simple-query message in one transaction.
    await this.retrying(() => this.execute(statements.join(';\n')))
  }

  /**
   * Adds a constraint for new rows, then validates the existing rows without blocking writes.
   * @param check the definition of the constraint, such as `check (size > 0)`
   */
  protected async constrain(table: string, name: string, check: string): Promise<void> {
    const [found] = await this.execute(
      'select from pg_constraint where conrelid = ?::regclass and conname = ?',
      [table, name],
    )
    if (!found) await this.change(`alter table ${table} add constraint ${name} ${check} not valid`)
    this.report(`validating ${name} on all rows of ${table}`)
    await this.change(`alter table ${table} validate constraint ${name}`)
  }

  /**
   * Creates an index without blocking writes. PostgreSQL first waits for all open transactions to end.
   * @param definition the part of the statement after the index name, such as `on sandbox (id)`
   */
  protected async index(name: string, definition: string, kind = 'index'): Promise<void> {
    this.report(`creating the index ${name}`)
    await this.retrying(async () => {
      const [found] = await this.execute(
        'select indisvalid from pg_index where indexrelid = to_regclass(?)',
        [name],
      )
      if (found?.indisvalid) return
      // An interrupted run leaves an invalid index, which PostgreSQL does not use.
      if (found) await this.execute(`drop index concurrently ${name}`)
      // A statement that waits for the lock of a concurrent index build does not block other statements.
      await this.execute('set lock_timeout = 0')
      try {
        await this.execute(`create ${kind} concurrently ${name} ${definition}`)
      } finally {
        await this.execute('reset lock_timeout')
      }
    })
  }

  /** Replaces an index. At any time, either the old or the new index is available to queries. */
  protected async replaceIndex(name: string, definition: string): Promise<void> {
    await this.index(`${name}_new`, definition)
    await this.change(`drop index if exists ${name}`, `alter index ${name}_new rename to ${name}`)
  }

  protected async fill(table: string, set: string, where: string): Promise<void> {
    const [all] = await this.execute(
      'select greatest(reltuples, 0)::bigint as rows from pg_class where oid = ?::regclass',
      [table],
    )
    let size = batchRows.initial
    let seen = 0
    let reportedAt = performance.now()
    for (let after = ''; ; ) {
      const startedAt = performance.now()
      const [found] = await this.execute(
        `select count(*)::int as rows, max(id) as last
           from (select id from ${table} where id > ? order by id limit ?) as batch`,
        [after, size],
      )
      const batch = found as { rows: number; last: string }
      if (batch.rows === 0) return
      await this.retrying(() =>
        this.execute(`update ${table} set ${set} where id > ? and id <= ? and ${where}`, [after, batch.last]),
      )
      after = batch.last
      seen += batch.rows
      const ms = performance.now() - startedAt
      size = Math.min(batchRows.max, Math.max(batchRows.min, Math.round(size * Math.min(2, batchMs / ms))))
      if (performance.now() - reportedAt > reportEveryMs) {
        reportedAt = performance.now()
        this.report(`processed ${seen} of about ${all!.rows} rows of ${table}`)
      }
      await sleep(ms / 4)
    }
  }

  private retrying = <T>(work: () => Promise<T>): Promise<T> =>
    retryLocks(work, { report: this.report, execute: (sql) => this.execute(sql) })
}
