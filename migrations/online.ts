/**
 * A migration of tables that may be large, while the old version works with them. Each step commits by itself, and
 * does nothing where it was done before: a run that breaks off is begun anew, and goes on where it ended.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Migration } from '@mikro-orm/migrations'
import { retryLocks } from './locks.ts'

/** Told to the operator, a line at a time. */
export type Say = (line: string) => void

/** Milliseconds that one bite of a back-fill should take, and the rows that it has at least and at most. */
const biteMs = 200
const biteRows = { first: 1_000, least: 100, most: 20_000 }
const sayEveryMs = 5_000

export abstract class Online extends Migration {
  /** Set by whoever runs it. */
  say: Say = () => {}

  override isTransactional(): boolean {
    return false
  }

  abstract override up(): Promise<void>

  /** Statements that take no time once they have their locks, as one transaction. */
  protected async change(...statements: string[]): Promise<void> {
    // PostgreSQL runs the statements of one message in one transaction.
    await this.retrying(() => this.execute(statements.join(';\n')))
  }

  /**
   * Adds a constraint that new rows must meet, and then looks whether the old ones do, while others write.
   * @param check such as `check (size > 0)`
   */
  protected async constrain(table: string, name: string, check: string): Promise<void> {
    const [found] = await this.execute(
      'select from pg_constraint where conrelid = ?::regclass and conname = ?',
      [table, name],
    )
    if (!found) await this.change(`alter table ${table} add constraint ${name} ${check} not valid`)
    this.say(`looks whether all rows of ${table} meet ${name}`)
    await this.change(`alter table ${table} validate constraint ${name}`)
  }

  /**
   * Makes an index while others write. It takes long, and waits for the transactions that are open.
   * @param definition what follows its name, such as `on sandbox (id)`
   */
  protected async index(name: string, definition: string, kind = 'index'): Promise<void> {
    this.say(`makes the index ${name}`)
    await this.retrying(async () => {
      const [found] = await this.execute(
        'select indisvalid from pg_index where indexrelid = to_regclass(?)',
        [name],
      )
      if (found?.indisvalid) return
      // A run that broke off has left it, and PostgreSQL does not use it.
      if (found) await this.execute(`drop index concurrently ${name}`)
      // It keeps nobody out while it waits.
      await this.execute('set lock_timeout = 0')
      try {
        await this.execute(`create ${kind} concurrently ${name} ${definition}`)
      } finally {
        await this.execute('reset lock_timeout')
      }
    })
  }

  /** Replaces an index by another one of the same name: there is always one to read from. */
  protected async replaceIndex(name: string, definition: string): Promise<void> {
    await this.index(`${name}_new`, definition)
    await this.change(`drop index if exists ${name}`, `alter index ${name}_new rename to ${name}`)
  }

  /** Updates the rows of a table that meet a condition, a bite at a time along its primary key `id`. */
  protected async fill(table: string, set: string, where: string): Promise<void> {
    const [all] = await this.execute(
      'select greatest(reltuples, 0)::bigint as rows from pg_class where oid = ?::regclass',
      [table],
    )
    let size = biteRows.first
    let seen = 0
    let saidAt = performance.now()
    for (let after = ''; ; ) {
      const startedAt = performance.now()
      const [found] = await this.execute(
        `select count(*)::int as rows, max(id) as last
           from (select id from ${table} where id > ? order by id limit ?) as bite`,
        [after, size],
      )
      const bite = found as { rows: number; last: string }
      if (bite.rows === 0) return
      await this.retrying(() =>
        this.execute(`update ${table} set ${set} where id > ? and id <= ? and ${where}`, [after, bite.last]),
      )
      after = bite.last
      seen += bite.rows
      const ms = performance.now() - startedAt
      size = Math.min(biteRows.most, Math.max(biteRows.least, Math.round(size * Math.min(2, biteMs / ms))))
      if (performance.now() - saidAt > sayEveryMs) {
        saidAt = performance.now()
        this.say(`has gone through ${seen} rows of ${table}, of some ${all!.rows}`)
      }
      // Leaves the disk to requests for a while.
      await sleep(ms / 4)
    }
  }

  private retrying = <T>(work: () => Promise<T>): Promise<T> =>
    retryLocks(work, { say: this.say, execute: (sql) => this.execute(sql) })
}
