/** Every statement that changes the table `exec`. */
import { type RawBuilder, sql } from 'kysely'
import type { Queries } from './database.ts'
import { type ExecEnding, noWorker, type ShownExec, shownColumns, workerLost } from './execs.ts'
import { now } from './sql.ts'
import { done, first, hasRow, only, statement } from './statement.ts'

export interface StartedExec {
  id: string
  sandboxId: string
  workerId: string
  pid: number | null
  idempotencyKey: string | null
  requestHash: Buffer | null
  sealedCommand: Buffer
  background: boolean
  tty: boolean
  /** PostgreSQL's time in milliseconds since 1970. After it, the insert does nothing. */
  endsMs: number
}

const insertBy = (commitMode: RawBuilder<unknown>, it: StartedExec) => sql<{ id: string }>`
  with commit_mode as (${commitMode})
  insert into exec (id, sandbox_id, worker_id, pid, idempotency_key, request_hash, sealed_command, background, tty, started_at)
  select ${it.id}, ${it.sandboxId}, ${it.workerId}, ${it.pid}::int, ${it.idempotencyKey}, ${it.requestHash}::bytea,
         ${it.sealedCommand}::bytea, ${it.background}::boolean, ${it.tty}::boolean, ${now}
    from commit_mode
   where clock_timestamp() < to_timestamp(${it.endsMs}::double precision / 1000)
  on conflict do nothing
  returning id`

/** Commits without waiting for the WAL flush. A crash of PostgreSQL may lose the last commits. */
const quick = sql`select set_config('synchronous_commit', 'off', true)`

/** Without an Idempotency-Key, a crash of PostgreSQL may lose the row, and the command is not listed. */
const insert = statement<StartedExec>()('command starts', (_, it) => insertBy(quick, it))
/** With a key, the row survives a crash, so that the command runs only once. */
const insertWithKey = statement<StartedExec>()('command with a key starts', (_, it) =>
  insertBy(sql`select 1`, it),
)

/** Returns false if the row or one with its Idempotency-Key exists, or `endsMs` has passed. */
export const insertExec = (db: Queries, started: StartedExec) =>
  hasRow(db.run(started.idempotencyKey === null ? insert : insertWithKey, started))

interface Ended extends ExecEnding {
  id: string
  stdout_bytes: number
  stderr_bytes: number
  truncated: boolean
  duration_ms: number
}

/** With an Idempotency-Key, the exit status also survives a crash. */
const endBy = (it: Ended, condition: RawBuilder<unknown>) => sql<{ id: string }>`
  with commit_mode as (
    select set_config('synchronous_commit',
                      case when idempotency_key is null then 'off' else current_setting('synchronous_commit') end, true)
      from exec where id = ${it.id})
  update exec
     set status = ${it.status}, exit_code = ${it.exit_code}, signal = ${it.signal}, reason = ${it.reason},
         stdout_bytes = ${it.stdout_bytes}, stderr_bytes = ${it.stderr_bytes}, truncated = ${it.truncated},
         duration_ms = ${it.duration_ms}
    from commit_mode
   where id = ${it.id} and status = 'running' ${condition}
  returning id`

/** In a destroyed sandbox, a command counts as killed. */
const end = statement<Ended>()('command ends', (_, it) =>
  endBy(it, sql`and not exists (select from sandbox where id = sandbox_id and destroyed_at is not null)`),
)
const endAnyhow = statement<Ended>()('command ends in any sandbox', (_, it) => endBy(it, sql``))

/** Returns false if the row has another exit status or the sandbox is destroyed. */
export const writeExit = (db: Queries, ended: Ended) => hasRow(db.run(end, ended))

/** Also in a destroyed sandbox. Returns false if the row has another exit status. */
export const writeExitUnconditionally = (db: Queries, ended: Ended) => hasRow(db.run(endAnyhow, ended))

const settle = statement<{ id: string; isLost: boolean }>()('command has ended', (db, { id, isLost }) =>
  db
    .updateTable('exec')
    .set({ is_left: sql<boolean>`is_left and ${isLost}::boolean` })
    .where('id', '=', id)
    .returning(['status', 'exit_code', 'signal', 'reason']),
)

/**
 * Records that no process of a command remains.
 * @param isLost whether it may still run
 * @returns the exit status in its row
 */
export const confirmExited = (db: Queries, id: string, isLost: boolean) =>
  first(db.run(settle, { id, isLost }))

const pid = statement<{ id: string; pid: number }>()('pid of command', (db, { id, pid }) =>
  db.updateTable('exec').set({ pid }).where('id', '=', id),
)

/** Stores a pid that was not known at the insert: of a terminal, or of a replacement slot. */
export const recordPid = (db: Queries, id: string, of: number) => done(db.run(pid, { id, pid: of }))

interface LostExec {
  id: string
  sandboxId: string
  sealedCommand: Buffer
  background: boolean
  tty: boolean
  startedAt: Date
  durationMs: number
}

const insertLost = statement<LostExec>()('command is lost', (db, it) =>
  db
    .insertInto('exec')
    .values({
      id: it.id,
      sandbox_id: it.sandboxId,
      worker_id: noWorker,
      sealed_command: it.sealedCommand,
      background: it.background,
      tty: it.tty,
      status: 'lost',
      reason: workerLost,
      truncated: true,
      started_at: it.startedAt,
      duration_ms: it.durationMs,
    })
    .onConflict((conflict) => conflict.doNothing()),
)

/**
 * Inserts a lost row for a command that was handed over and has none. A worker inserts the row before it starts the
 * command, and fails if this row exists, so no command starts after it was reported as lost. Does nothing if the
 * worker's row exists.
 */
export const insertLostExec = (db: Queries, lost: LostExec) => done(db.run(insertLost, lost))

interface UnknownEnd {
  id: string
  sandboxId: string
}

/** Milliseconds from the start until now, or until the sandbox was destroyed. */
const durationMs = sql`greatest(0, round(1000 * extract(epoch from
  least(${now}, (select destroyed_at from sandbox where id = exec.sandbox_id)) - exec.started_at)))`

/**
 * Ends a command with an unknown exit status: `lost`, or `killed` if its sandbox is destroyed. The lock on the
 * sandbox's row prevents a concurrent destroy.
 */
const endUnknown = ({ id, sandboxId }: UnknownEnd, more: RawBuilder<unknown>) => sql<ShownExec>`
  with its_sandbox as (select destroyed_at, destroy_reason from sandbox where id = ${sandboxId} for share)
  update exec
     set status = case when destroyed_at is null then 'lost' else 'killed' end,
         reason = case when destroyed_at is null then ${sql.lit(workerLost)} else destroy_reason end,
         truncated = true, duration_ms = ${durationMs}${more}
    from its_sandbox where exec.id = ${id} and status = 'running'
  returning ${sql.join(shownColumns.map((column) => sql.ref(`exec.${column}`)))}`

const loseOrphan = statement<UnknownEnd>()('orphan is lost', (_, it) => endUnknown(it, sql``))

export const markOrphanLost = (db: Queries, orphan: UnknownEnd) => done(db.run(loseOrphan, orphan))

const lose = statement<UnknownEnd & { stdout: number; stderr: number }>()(
  'command of unresponsive worker is lost',
  (_, it) =>
    endUnknown(
      it,
      sql`, stdout_bytes = ${it.stdout}, stderr_bytes = ${it.stderr}, is_left = destroyed_at is null`,
    ),
)

/**
 * Marks a command as lost that may still run. The reconciler kills it.
 * @param printed the number of bytes that the client received
 * @returns undefined if the row has an exit status or does not exist
 */
export const markLost = (db: Queries, of: UnknownEnd, printed: { stdout: number; stderr: number }) =>
  first(db.run(lose, { ...of, ...printed }))

const clearLeft = statement<{ id: string }>()('orphan has ended', (db, { id }) =>
  db.updateTable('exec').set({ is_left: false }).where('id', '=', id),
)

/** Records that no process of a lost command remains. */
export const markEnded = (db: Queries, id: string) => done(db.run(clearLeft, { id }))

const withdraw = statement<{ ids: string[] }>()(
  'withdraw commands',
  (_, { ids }) => sql<{ clock_ms: number }>`
  with withdrawn as (delete from exec where id = any(${ids}::text[]) and status = 'running'),
       reported as (update exec set is_left = false where id = any(${ids}::text[]) and is_left)
  select (extract(epoch from statement_timestamp()) * 1000)::double precision as clock_ms`,
)

/**
 * Deletes the rows of commands that did not run, with their Idempotency-Keys. A row reported as `lost` remains.
 * @returns PostgreSQL's time, in milliseconds since 1970, at which these rows did not exist
 */
export const takeBackExecs = async (db: Queries, ids: string[]) =>
  (await only(db.run(withdraw, { ids }))).clock_ms

const forget = statement<{ before: string; limit: number }>()('forget commands', (db, { before, limit }) =>
  db
    .deleteFrom('exec')
    .where('id', 'in', (db) =>
      db
        .selectFrom('exec')
        .select('id')
        .where('id', '<', before)
        .where('status', '<>', 'running')
        .orderBy('id')
        .limit(limit),
    ),
)

export const forgetExecs = (db: Queries, of: { before: string; limit: number }) => done(db.run(forget, of))
