/** All statements that modify the `exec` table. */
import { type RawBuilder, sql } from 'kysely'
import type { Queries } from './database.ts'
import { type ExecEnding, noWorker, type ShownExec, shownColumns, workerLost } from './execs.ts'
import { endedAt, endReason, now } from './sql.ts'
import { done, first, hasRow, only } from './statement.ts'

interface StartedExec {
  id: string
  sandboxId: string
  workerId: string
  pid: number | null
  idempotencyKey: string | null
  requestHash: Buffer | null
  sealedCommand: Buffer
  background: boolean
  tty: boolean
  /**
   * Deadline for the insert by PostgreSQL's clock, in milliseconds since the Unix epoch. A later insert does
   * nothing.
   */
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

/** Lets the commit return before the WAL is flushed. A PostgreSQL crash can then lose recent commits. */
const quick = sql`select set_config('synchronous_commit', 'off', true)`

/**
 * Inserts a command without an Idempotency-Key. If a PostgreSQL crash loses the row, the command is no longer
 * listed.
 */
const insert = hasRow<StartedExec>()('command starts', (_, it) => insertBy(quick, it))
/**
 * Inserts a command with an Idempotency-Key. The row survives a crash, so a retry does not run the command
 * again.
 */
const insertWithKey = hasRow<StartedExec>()('command with a key starts', (_, it) =>
  insertBy(sql`select 1`, it),
)

/**
 * Records the start of a command. Returns false if a row with this ID or Idempotency-Key exists, or if
 * `endsMs` has passed.
 */
export const insertExec = (db: Queries, started: StartedExec) =>
  (started.idempotencyKey === null ? insert : insertWithKey)(db, started)

interface Ended extends ExecEnding {
  id: string
  pid: number | null
  stdout_bytes: number
  stderr_bytes: number
  truncated: boolean
  duration_ms: number
}

/**
 * Writes a command's exit status, which survives a PostgreSQL crash only if the command has an
 * Idempotency-Key.
 */
const endBy = (it: Ended, condition: RawBuilder<unknown>) => sql<{ id: string }>`
  with commit_mode as (
    select set_config('synchronous_commit',
                      case when idempotency_key is null then 'off' else current_setting('synchronous_commit') end, true)
      from exec where id = ${it.id})
  update exec
     set status = ${it.status}, exit_code = ${it.exit_code}, signal = ${it.signal}, reason = ${it.reason},
         start_error = ${it.start_error}, command_pid = ${it.pid}::int,
         stdout_bytes = ${it.stdout_bytes}, stderr_bytes = ${it.stderr_bytes}, truncated = ${it.truncated},
         duration_ms = ${it.duration_ms}
    from commit_mode
   where id = ${it.id} and status = 'running' ${condition}
  returning id`

/**
 * Writes a command's exit status. Returns false if the row already has one, or if the sandbox is destroyed.
 * In a destroyed sandbox, every command counts as killed.
 */
export const writeExit = hasRow<Ended>()('command ends', (_, it) =>
  endBy(it, sql`and not exists (select from sandbox where id = sandbox_id and destroyed_at is not null)`),
)

/**
 * Writes a command's exit status even if the sandbox is destroyed. Returns false if the row already has one.
 */
export const writeExitUnconditionally = hasRow<Ended>()('command ends in any sandbox', (_, it) =>
  endBy(it, sql``),
)

const settle = first<{ id: string; isLost: boolean }>()('command has ended', (db, { id, isLost }) =>
  db
    .updateTable('exec')
    .set({ is_left: sql<boolean>`is_left and ${isLost}::boolean` })
    .where('id', '=', id)
    .returning(['status', 'exit_code', 'signal', 'reason', 'start_error']),
)

/**
 * Records that a worker no longer runs a command, and returns the exit status stored in the row.
 * @param isLost whether processes of the command may still be running; if not, `is_left` is cleared
 */
export const confirmExited = (db: Queries, id: string, isLost: boolean) => settle(db, { id, isLost })

const pid = done<{ id: string; pid: number }>()('pid of command', (db, { id, pid }) =>
  db.updateTable('exec').set({ pid }).where('id', '=', id),
)

/**
 * Records a PID that was unknown when the row was inserted: the command runs in a terminal, or its slot
 * (a shell that waits for a command) closed before the command started and was replaced.
 */
export const recordPid = (db: Queries, id: string, of: number) => pid(db, { id, pid: of })

interface LostExec {
  id: string
  sandboxId: string
  sealedCommand: Buffer
  background: boolean
  tty: boolean
  startedAt: Date
  durationMs: number
}

/**
 * Inserts a command as lost, so that its worker can no longer start it. Does nothing if the worker has
 * already inserted the command.
 */
export const insertLostExec = done<LostExec>()('command is lost', (db, it) =>
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

interface UnknownEnd {
  id: string
  sandboxId: string
}

const durationMs = sql`greatest(0, round(1000 * extract(epoch from
  least(${now}, (select ${endedAt} from sandbox where id = exec.sandbox_id)) - exec.started_at)))`

/**
 * Ends a command whose exit status is unknown. The status becomes `killed` if the sandbox is destroyed, or
 * `lost` otherwise. A row lock on the sandbox prevents a concurrent destroy.
 */
const endUnknown = ({ id, sandboxId }: UnknownEnd, more: RawBuilder<unknown>) => sql<ShownExec>`
  with its_sandbox as (select ${endedAt} as destroyed_at, ${endReason} as destroy_reason from sandbox where id = ${sandboxId} for share)
  update exec
     set status = case when destroyed_at is null then 'lost' else 'killed' end,
         reason = case when destroyed_at is null then ${sql.lit(workerLost)} else destroy_reason end,
         truncated = true, duration_ms = ${durationMs}${more}
    from its_sandbox where exec.id = ${id} and status = 'running'
  returning ${sql.join(shownColumns.map((column) => sql.ref(`exec.${column}`)))}`

export const markOrphanLost = done<UnknownEnd>()('orphan is lost', (_, it) => endUnknown(it, sql``))

const lose = first<UnknownEnd & { stdout: number; stderr: number }>()(
  'command of unresponsive worker is lost',
  (_, it) =>
    endUnknown(
      it,
      sql`, stdout_bytes = ${it.stdout}, stderr_bytes = ${it.stderr}, is_left = destroyed_at is null`,
    ),
)

/**
 * Marks a command of an unresponsive worker as lost. The reconciler kills any remaining processes.
 * @param printed number of output bytes that the client received
 * @returns undefined if the command has no row or already has an exit status
 */
export const markLost = (db: Queries, of: UnknownEnd, printed: { stdout: number; stderr: number }) =>
  lose(db, { ...of, ...printed })

const clearLeft = done<{ id: string }>()('orphan has ended', (db, { id }) =>
  db.updateTable('exec').set({ is_left: false }).where('id', '=', id),
)

export const markEnded = (db: Queries, id: string) => clearLeft(db, { id })

const withdraw = only<{ ids: string[] }>()(
  'withdraw commands',
  (_, { ids }) => sql<{ clock_ms: number }>`
  with withdrawn as (delete from exec where id = any(${ids}::text[]) and status = 'running'),
       reported as (update exec set is_left = false where id = any(${ids}::text[]) and is_left)
  select (extract(epoch from statement_timestamp()) * 1000)::double precision as clock_ms`,
)

/**
 * Deletes the rows of commands that did not run, and with them their Idempotency-Keys. A row that is already
 * marked `lost` is kept, but `is_left` is cleared.
 * @returns PostgreSQL's time when the deletion started, in milliseconds since the Unix epoch
 */
export const takeBackExecs = async (db: Queries, ids: string[]) => (await withdraw(db, { ids })).clock_ms

export const forgetExecs = done<{ before: string; limit: number }>()(
  'forget commands',
  (db, { before, limit }) =>
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
