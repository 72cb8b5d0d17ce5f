/** The table `exec`: what a command was and how it ended, for when its worker is gone. */

import type { StartExec } from '../../shared/calls.ts'
import { prepare, type Queries } from '../../shared/database/index.ts'
import { commandPlace, oneLine } from '../../shared/execs.ts'
import { unavailable } from '../../shared/problem.ts'
import { hashOfRequest, isHashOf } from '../../shared/request-hash.ts'
import type { WorkerContext } from '../context.ts'
import type { End, Ending } from './command.ts'

export interface KnownCommand {
  id: string
  workerId: string
  isSameRequest: boolean
}

/** Does not wait for Postgres' disk: a crash of it may take along what was written in the last moments. */
const quick = `with way as (select set_config('synchronous_commit', 'off', true))`

const insert = (way: string) => `${way}
   insert into exec (id, sandbox_id, worker_id, pid, idempotency_key, request_hash, sealed_command, background, tty, started_at)
   select ?, ?, ?, ?, ?, ?, ?, ?, ?, sandlot_now() from way
   on conflict do nothing
   returning id`

/** What a crash takes along of a command without a key is its line in the list. */
const insertStart = prepare('command starts', insert(quick))
/** A key outlives a crash: its command runs once. */
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

/** What a crash takes along is written again (ends.ts). A command whose sandbox is destroyed is told to be killed from then on. */
const updateEnd = prepare(
  'command ends',
  update(` and status = 'running'
       and not exists (select from sandbox where id = sandbox_id and destroyed_at is not null)`),
)
const updateRunning = prepare('command ends whatever its sandbox does', update(` and status = 'running'`))

/**
 * Writes down that a command is about to run, before it does.
 * @returns undefined, or the command that this Idempotency-Key stands for already
 * @throws {Problem} `unavailable`: whoever asked for it was told that it is lost, which stands in its place
 */
export async function recordStart(
  { db, lines, settings, id: workerId }: Pick<WorkerContext, 'db' | 'lines' | 'settings' | 'id'>,
  { execId, sandboxId, idempotencyKey, request }: StartExec,
  pid: number | null,
): Promise<KnownCommand | undefined> {
  const hash = idempotencyKey ? hashOfRequest(request, settings.callsKeys) : null
  const isBackground = (request.background || request.tty) ?? false
  const inserted = await db.run(idempotencyKey ? insertStartWithKey : insertStart, [
    execId,
    sandboxId,
    workerId,
    pid,
    idempotencyKey ?? null,
    hash,
    lines.seal(oneLine(request.command), commandPlace(execId)),
    isBackground,
    request.tty ?? false,
  ])
  if (inserted.length === 1) return undefined
  const [known] = await db.query<{ id: string; worker_id: string; request_hash: Buffer }>(
    'select id, worker_id, request_hash from exec where sandbox_id = ? and idempotency_key = ?',
    [sandboxId, idempotencyKey ?? null],
  )
  if (!known) throw unavailable('This command was taken for lost. It was not run.')
  return {
    id: known.id,
    workerId: known.worker_id,
    isSameRequest: isHashOf(known.request_hash, request, settings.callsKeys),
  }
}

/** For a process that is known only later: a terminal's, or of a slot that takes another's place. */
export async function recordPid(db: Queries, execId: string, pid: number): Promise<void> {
  await db.query('update exec set pid = ? where id = ?', [pid, execId])
}

/**
 * It did not run after all: its Idempotency-Key stands for nothing. One of which clients were told that it is lost
 * stays so, and nothing is left to end.
 */
export async function forgetStart(db: Queries, execId: string): Promise<void> {
  await db.query(
    `with forgotten as (delete from exec where id = ? and status = 'running')
     update exec set is_left = false where id = ? and is_left`,
    [execId, execId],
  )
}

/**
 * @returns undefined, or the end that stands in its place: whoever took this worker for lost wrote it, or its sandbox was
 * destroyed, which clients may have been told
 */
export async function recordEnd(db: Queries, end: End): Promise<Ending | undefined> {
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
  // The sweep need not end what has ended.
  const [told] = await db.query<Ending & Record<string, unknown>>(
    'update exec set is_left = is_left and ? where id = ? returning status, exit_code, signal, reason',
    [end.status === 'lost', end.id],
  )
  return told
}

/** The same for an end that clients were told before a crash took it along. @returns false when another stands there */
export const recordToldEnd = async (db: Queries, end: End): Promise<boolean> =>
  (await db.run(updateRunning, valuesOf(end))).length === 1

const valuesOf = (end: End) => [
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
