/** The table `exec`: what each command was and how it ended, for when its worker is gone. */

import type { ExecEnd } from '../../shared/contract/exec.ts'
import { type DatabaseClock, readOf } from '../../shared/data/clock.ts'
import { ofRequests, prepare, type Queries } from '../../shared/data/database.ts'
import { commandSealContext, oneLine } from '../../shared/data/execs.ts'
import type { Context } from '../../shared/platform/context.ts'
import { unavailable } from '../../shared/platform/problem.ts'
import { hashOfRequest, isHashOf } from '../../shared/platform/request-hash.ts'
import type { StartExec } from '../../shared/rpc/calls.ts'
import type { Ending } from './command.ts'
import { notRun, type TakenBack } from './taken-back.ts'

export interface KnownCommand {
  id: string
  workerId: string
  isSameRequest: boolean
}

/** Does not wait for PostgreSQL's disk. A crash of PostgreSQL may forget what was written in its last moments. */
const quick = `with way as (select set_config('synchronous_commit', 'off', true))`

const insert = (way: string) => `${way}
   insert into exec (id, sandbox_id, worker_id, pid, idempotency_key, request_hash, sealed_command, background, tty, started_at)
   select ?, ?, ?, ?, ?, ?, ?, ?, ?, sandlot_now() from way
    where clock_timestamp() < to_timestamp(?::double precision / 1000)
   on conflict do nothing
   returning id`

/** A crash may forget the row of a command without an Idempotency-Key: one line in the list. */
const insertStart = prepare('command starts', insert(quick))
/** The row of a command with a key survives a crash, so that the command runs once. */
const insertStartWithKey = prepare('command with a key starts', insert('with way as (select 1)'))

/** What is told of a command with a key stands, whatever crashes right behind. */
const quickWithoutKey = `with way as (
  select set_config('synchronous_commit',
                    case when idempotency_key is null then 'off' else current_setting('synchronous_commit') end, true)
    from exec where id = ?)`

const update = (condition: string) => `${quickWithoutKey}
   update exec set status = ?, exit_code = ?, signal = ?, reason = ?, stdout_bytes = ?, stderr_bytes = ?,
          truncated = ?, duration_ms = ?
     from way
    where id = ?${condition}
   returning id`

/** An end that a crash forgets is written again (ends.ts). With its sandbox destroyed, a command counts as killed. */
const updateEnd = prepare(
  'command ends',
  update(` and status = 'running'
       and not exists (select from sandbox where id = sandbox_id and destroyed_at is not null)`),
)
const updateRunning = prepare('command ends whatever its sandbox does', update(` and status = 'running'`))

/**
 * Inserts the row of a command before it runs. A row whose insert failed is taken back, and an insert that PostgreSQL
 * gets late does nothing: after a refusal nothing is left.
 * @returns undefined, or the command that this Idempotency-Key already stands for
 * @throws {Problem} `unavailable` when its client was told that it is lost: the row says so already
 */
export async function recordStart(
  worker: Pick<Context, 'db' | 'lines' | 'settings'> & { id: string; takenBack: TakenBack },
  { execId, sandboxId, accountId, idempotencyKey, request, stdin }: StartExec,
  { pid, clock }: { pid: number | null; clock: DatabaseClock },
): Promise<KnownCommand | undefined> {
  const { db, lines, settings, id: workerId, takenBack } = worker
  const hashed = stdin ? { ...request, stdin } : request
  const hash = idempotencyKey ? await hashOfRequest(hashed, settings.callsKeys) : null
  const isBackground = (request.background || request.tty) ?? false
  const endsMs = readOf(clock) + ofRequests.statement
  const statement = idempotencyKey ? insertStartWithKey : insertStart
  const values = [
    execId,
    sandboxId,
    workerId,
    pid,
    idempotencyKey ?? null,
    hash,
    lines.seal(oneLine(request.command), commandSealContext(execId)),
    isBackground,
    request.tty ?? false,
    endsMs,
  ]
  const inserted = await db
    .share(accountId)
    .run(statement, values)
    .catch((error) => {
      // PostgreSQL may have it, or still be at it.
      void takenBack.take(execId, endsMs + ofRequests.statement)
      throw error
    })
  if (inserted.length === 1) return undefined
  const [known] = await db.query<{ id: string; worker_id: string; request_hash: Buffer }>(
    'select id, worker_id, request_hash from exec where sandbox_id = ? and idempotency_key = ?',
    [sandboxId, idempotencyKey ?? null],
  )
  if (!known)
    throw unavailable('This command was taken for lost, or its start took too long. It was not run.')
  if (takenBack.has(known.id)) throw notRun()
  return {
    id: known.id,
    workerId: known.worker_id,
    isSameRequest: await isHashOf(known.request_hash, hashed, settings.callsKeys),
  }
}

/** Writes the pid of a process that is known only later: a terminal's, or that of a slot that replaces another. */
export async function recordPid(db: Queries, execId: string, pid: number): Promise<void> {
  await db.query('update exec set pid = ? where id = ?', [pid, execId])
}

/**
 * @returns undefined, or another end that stands there already: whoever took this worker for lost wrote it, or the
 *   sandbox was destroyed, which clients may have been told
 */
export async function recordEnd(db: Queries, end: ExecEnd): Promise<Ending | undefined> {
  const written = await db.run(updateEnd, valuesOf(end))
  if (written.length === 1) return undefined
  const [sandbox] = await db.query<{ destroy_reason: string }>(
    `select destroy_reason from exec join sandbox on sandbox.id = sandbox_id
      where exec.id = ? and status = 'running' and destroyed_at is not null`,
    [end.id],
  )
  if (sandbox) {
    const killed = {
      status: 'killed',
      exit_code: null,
      signal: null,
      reason: sandbox.destroy_reason,
    } as const
    if ((await db.run(updateRunning, valuesOf({ ...end, ...killed }))).length === 1) return killed
  }
  // The command has ended, so the sweep need not end it.
  const [told] = await db.query<Ending & Record<string, unknown>>(
    'update exec set is_left = is_left and ? where id = ? returning status, exit_code, signal, reason',
    [end.status === 'lost', end.id],
  )
  return told
}

/** Writes again an end that clients were told before a crash forgot it. @returns false when another end stands there */
export const recordToldEnd = async (db: Queries, end: ExecEnd): Promise<boolean> =>
  (await db.run(updateRunning, valuesOf(end))).length === 1

const valuesOf = (end: ExecEnd) => [
  end.id,
  end.status,
  end.exit_code,
  end.signal,
  end.reason,
  end.stdout_bytes,
  end.stderr_bytes,
  end.truncated,
  end.duration_ms,
  end.id,
]
