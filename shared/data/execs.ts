/**
 * The table `exec`: what each command was and how it ended, for when its worker is gone. Only this file writes to it, and
 * `lost-execs.ts` of what nobody knows the end of.
 */
import { type NotNull, type RawBuilder, sql } from 'kysely'
import { shellWord } from '../contract/shell-words.ts'
import type { Queries } from './database.ts'
import type { ExecRow } from './entities/exec.ts'
import type { Tables } from './entities/index.ts'
import { isOlder, now } from './sql.ts'
import { statement } from './statement.ts'

export type { ExecRow }

/** What a command's line is sealed for. */
export const commandSealContext = (execId: string) => `exec-command ${execId}`

const lineCharacters = 300

/** A command as a line for people: quoted where a shell would need it, cut. */
export function oneLine(command: string | string[]): string {
  const text = typeof command === 'string' ? command : command.map(shellWord).join(' ')
  const line = text.replaceAll(/\s*\n\s*/g, ' ⏎ ')
  return line.length > lineCharacters ? `${line.slice(0, lineCharacters - 1)}…` : line
}

export const shownColumns = [
  'id',
  'worker_id',
  'sealed_command',
  'background',
  'tty',
  'status',
  'exit_code',
  'signal',
  'reason',
  'stdout_bytes',
  'stderr_bytes',
  'truncated',
  'started_at',
  'duration_ms',
] as const satisfies (keyof Tables['exec'])[]

/** What may be told of a command. */
export type ShownExec = Pick<ExecRow, (typeof shownColumns)[number]>

/** How it ended, as clients are told. */
export type ExecEnding = Pick<ExecRow, 'status' | 'exit_code' | 'signal' | 'reason'>

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
  /** PostgreSQL's time, in milliseconds since 1970, from which on the insert does nothing. */
  endsMs: number
}

const insertBy = (way: RawBuilder<unknown>, it: StartedExec) => sql<{ id: string }>`
  with way as (${way})
  insert into exec (id, sandbox_id, worker_id, pid, idempotency_key, request_hash, sealed_command, background, tty, started_at)
  select ${it.id}, ${it.sandboxId}, ${it.workerId}, ${it.pid}::int, ${it.idempotencyKey}, ${it.requestHash}::bytea,
         ${it.sealedCommand}::bytea, ${it.background}::boolean, ${it.tty}::boolean, ${now}
    from way
   where clock_timestamp() < to_timestamp(${it.endsMs}::double precision / 1000)
  on conflict do nothing
  returning id`

/** Does not wait for PostgreSQL's disk. A crash of PostgreSQL may forget what was written in its last moments. */
const quick = sql`select set_config('synchronous_commit', 'off', true)`

/** A crash of PostgreSQL may lose the row of a command without an Idempotency-Key, which then is not listed. */
const insert = statement<StartedExec>()('command starts', (_, it) => insertBy(quick, it))
/** The row of a command with a key survives a crash, so that the command runs once. */
const insertWithKey = statement<StartedExec>()('command with a key starts', (_, it) =>
  insertBy(sql`select 1`, it),
)

/** @returns false when there is such a row, or one with its Idempotency-Key, or its time is over */
export async function insertExec(db: Queries, started: StartedExec): Promise<boolean> {
  return (await db.run(started.idempotencyKey === null ? insert : insertWithKey, started)).length === 1
}

interface Ended extends ExecEnding {
  id: string
  stdout_bytes: number
  stderr_bytes: number
  truncated: boolean
  duration_ms: number
}

/** What is told of a command with a key stands, whatever crashes right behind. */
const endBy = (it: Ended, condition: RawBuilder<unknown>) => sql<{ id: string }>`
  with way as (
    select set_config('synchronous_commit',
                      case when idempotency_key is null then 'off' else current_setting('synchronous_commit') end, true)
      from exec where id = ${it.id})
  update exec
     set status = ${it.status}, exit_code = ${it.exit_code}, signal = ${it.signal}, reason = ${it.reason},
         stdout_bytes = ${it.stdout_bytes}, stderr_bytes = ${it.stderr_bytes}, truncated = ${it.truncated},
         duration_ms = ${it.duration_ms}
    from way
   where id = ${it.id} and status = 'running' ${condition}
  returning id`

/** With its sandbox destroyed, a command counts as killed. */
const end = statement<Ended>()('command ends', (_, it) =>
  endBy(it, sql`and not exists (select from sandbox where id = sandbox_id and destroyed_at is not null)`),
)
const endAnyhow = statement<Ended>()('command ends whatever its sandbox does', (_, it) => endBy(it, sql``))

/** @returns false when another end stands there, or its sandbox was destroyed */
export async function writeEnd(db: Queries, ended: Ended): Promise<boolean> {
  return (await db.run(end, ended)).length === 1
}

/** Also in a sandbox that was destroyed. @returns false when another end stands there */
export async function writeEndAnyhow(db: Queries, ended: Ended): Promise<boolean> {
  return (await db.run(endAnyhow, ended)).length === 1
}

const endOfHome = statement<{ id: string }>()('end of sandbox of running command', (db, { id }) =>
  db
    .selectFrom('exec')
    .innerJoin('sandbox', 'sandbox.id', 'sandbox_id')
    .select('destroy_reason')
    .where('exec.id', '=', id)
    .where('status', '=', 'running')
    .where('destroyed_at', 'is not', null),
)

/** Why the sandbox of a command ended whose row says that it runs. @returns undefined when neither is so */
export async function findEndOfHome(db: Queries, id: string) {
  const [row] = await db.run(endOfHome, { id })
  return row
}

const settle = statement<{ id: string; isLost: boolean }>()('command has ended', (db, { id, isLost }) =>
  db
    .updateTable('exec')
    .set({ is_left: sql<boolean>`is_left and ${isLost}::boolean` })
    .where('id', '=', id)
    .returning(['status', 'exit_code', 'signal', 'reason']),
)

/**
 * The sweep need not end a command that has ended.
 * @param isLost whether it may still run
 * @returns the end that stands in its row
 */
export async function readEnd(db: Queries, id: string, isLost: boolean): Promise<ExecEnding | undefined> {
  const [row] = await db.run(settle, { id, isLost })
  return row
}

const pid = statement<{ id: string; pid: number }>()('pid of command', (db, { id, pid }) =>
  db.updateTable('exec').set({ pid }).where('id', '=', id),
)

/** Writes the pid of a process that is known only later: a terminal's, or that of a slot that replaces another. */
export async function recordPid(db: Queries, id: string, of: number): Promise<void> {
  await db.run(pid, { id, pid: of })
}

const byKey = statement<{ sandboxId: string; key: string | null }>()(
  'command by key',
  (db, { sandboxId, key }) =>
    db
      .selectFrom('exec')
      .select(['id', 'worker_id', 'request_hash', 'status', 'started_at'])
      .where('sandbox_id', '=', sandboxId)
      .where('idempotency_key', '=', key)
      // A command with a key has the hash of its request.
      .$narrowType<{ request_hash: NotNull }>(),
)

/** The command that an Idempotency-Key stands for in a sandbox. */
export async function findExecByKey(db: Queries, of: { sandboxId: string; key: string | null }) {
  const [row] = await db.run(byKey, of)
  return row
}

const byId = statement<{ sandboxId: string; execId: string }>()(
  'command by id',
  (db, { sandboxId, execId }) =>
    db.selectFrom('exec').select(shownColumns).where('sandbox_id', '=', sandboxId).where('id', '=', execId),
)

export async function findExec(
  db: Queries,
  of: { sandboxId: string; execId: string },
): Promise<ShownExec | undefined> {
  const [row] = await db.run(byId, of)
  return row
}

const started = statement<{ sandboxId: string; execId: string; key: string | null }>()(
  'command by id or key',
  (db, { sandboxId, execId, key }) =>
    db
      .selectFrom('exec')
      .select(shownColumns)
      .where('sandbox_id', '=', sandboxId)
      .where(({ or, eb }) => or([eb('id', '=', execId), eb('idempotency_key', '=', key)])),
)

/** The command that a request asked for: under its own id, or the one that runs under its Idempotency-Key. */
export async function findStarted(
  db: Queries,
  { key, ...of }: { sandboxId: string; execId: string; key: string | undefined },
): Promise<ShownExec | undefined> {
  const [row] = await db.run(started, { ...of, key: key ?? null })
  return row
}

const ofSandbox = statement<{ sandboxId: string; before: string | null; limit: number }>()(
  'commands of sandbox',
  (db, { sandboxId, before, limit }) =>
    db
      .selectFrom('exec')
      .select(shownColumns)
      .where('sandbox_id', '=', sandboxId)
      .where(isOlder(before))
      .orderBy('id', 'desc')
      .limit(limit),
)

/** The commands of a sandbox, newest first. @param page.before the id that the previous page ended with */
export const listExecs = (
  db: Queries,
  page: { sandboxId: string; before: string | null; limit: number },
): Promise<ShownExec[]> => db.run(ofSandbox, page)

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

/** Deletes rows of commands that have ended. @param of.before an id */
export async function forgetExecs(db: Queries, of: { before: string; limit: number }): Promise<void> {
  await db.run(forget, of)
}
