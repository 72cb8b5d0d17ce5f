/** Queries that read the `exec` table. Only `exec-writes.ts` writes to the table. */
import { type NotNull, sql } from 'kysely'
import { posixWord } from '../contract/shell-words.ts'
import type { Queries } from './database.ts'
import type { ExecRow, Tables } from './entities.ts'
import { isOlder, type Page } from './sql.ts'
import { first, rows } from './statement.ts'

export type { ExecRow }

export const commandSealContext = (execId: string) => `exec-command ${execId}`

const lineCharacters = 300

/** Formats a command as one line of at most 300 characters. */
export function oneLine(command: string | string[]): string {
  const text = typeof command === 'string' ? command : command.map(posixWord).join(' ')
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
  'start_error',
  'command_pid',
  'stdout_bytes',
  'stderr_bytes',
  'truncated',
  'started_at',
  'duration_ms',
] as const satisfies (keyof Tables['exec'])[]

export type ShownExec = Pick<ExecRow, (typeof shownColumns)[number]>

export type ExecEnding = Pick<ExecRow, 'status' | 'exit_code' | 'signal' | 'reason' | 'start_error'>

export const workerLost = 'the worker that ran it was lost'

/** The `worker_id` of a command that no worker has started. */
export const noWorker = ''

const destroyReason = first<{ id: string }>()('end of sandbox of running command', (db, { id }) =>
  db
    .selectFrom('exec')
    .innerJoin('sandbox', 'sandbox.id', 'sandbox_id')
    .select('destroy_reason')
    .where('exec.id', '=', id)
    .where('status', '=', 'running')
    .where('destroyed_at', 'is not', null),
)

/**
 * Returns why a command's sandbox was destroyed. Returns undefined if the sandbox has not been destroyed, or
 * if the command is not recorded as running.
 */
export const findDestroyReasonOfExec = (db: Queries, id: string) => destroyReason(db, { id })

export const findExecByKey = first<{ sandboxId: string; key: string | null }>()(
  'command by key',
  (db, { sandboxId, key }) =>
    db
      .selectFrom('exec')
      .select(['id', 'worker_id', 'request_hash', 'status', 'started_at'])
      .where('sandbox_id', '=', sandboxId)
      .where('idempotency_key', '=', key)
      // Every row with an Idempotency-Key also has the hash of its request.
      .$narrowType<{ request_hash: NotNull }>(),
)

export const findExec = first<{ sandboxId: string; execId: string }>()(
  'command by id',
  (db, { sandboxId, execId }) =>
    db.selectFrom('exec').select(shownColumns).where('sandbox_id', '=', sandboxId).where('id', '=', execId),
)

const started = first<{ sandboxId: string; execId: string; key: string | null }>()(
  'command by id or key',
  (db, { sandboxId, execId, key }) =>
    db
      .selectFrom('exec')
      .select(shownColumns)
      .where('sandbox_id', '=', sandboxId)
      .where(({ or, eb }) => or([eb('id', '=', execId), eb('idempotency_key', '=', key)])),
)

export const findStarted = (
  db: Queries,
  { key, ...of }: { sandboxId: string; execId: string; key: string | undefined },
) => started(db, { ...of, key: key ?? null })

export const listExecs = rows<Page & { sandboxId: string }>()(
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

const listed = (ids: string) => sql<string>`(select jsonb_array_elements_text(${ids}::jsonb))`

const missing = rows<{ live: string }>()('missing workers', (db, { live }) => {
  const workers = db.selectFrom('exec').select('worker_id').where('worker_id', 'not in', listed(live))
  return workers
    .where('status', '=', 'running')
    .union(workers.where('is_left', '=', sql.lit(true)).where('pid', 'is', null))
})

/** Returns the IDs of workers that are not in `live` but have commands that may still be running. */
export async function findMissingWorkers(db: Queries, live: string[]): Promise<string[]> {
  return (await missing(db, { live: JSON.stringify(live) })).map(({ worker_id }) => worker_id)
}

interface OrphanPage {
  after: string
  limit: number
}

const orphans = rows<OrphanPage & { gone: string }>()('orphans', (db, { gone, after, limit }) =>
  db
    .selectFrom('exec')
    .innerJoin('sandbox', 'sandbox.id', 'sandbox_id')
    .select(['exec.id', 'pid', 'sandbox_id', 'pod_name', 'pod_uid', 'destroy_reason', 'is_left'])
    .select(['worker_id', 'account_id'])
    .where(({ or, and, eb }) =>
      or([
        and([eb('status', '=', 'running'), eb('worker_id', 'in', listed(gone))]),
        // A live worker may still write the pid or withdraw the command.
        and([
          eb('is_left', '=', sql.lit(true)),
          or([eb('pid', 'is not', null), eb('worker_id', 'in', listed(gone))]),
        ]),
      ]),
    )
    .where('exec.id', '>', after)
    .orderBy('exec.id')
    .limit(limit),
)

/**
 * Returns commands that were running on a worker in `gone`, and lost commands that may still have processes.
 * The reconciler kills these processes.
 */
export const findOrphans = (db: Queries, gone: string[], page: OrphanPage) =>
  orphans(db, { gone: JSON.stringify(gone), ...page })
export type Orphan = Awaited<ReturnType<typeof findOrphans>>[number]

const running = rows<{ ids: string[] }>()('running commands', (db, { ids }) =>
  db
    .selectFrom('exec')
    .select('id')
    .where('id', '=', sql<string>`any(${ids}::text[])`)
    .where('status', '=', 'running'),
)

export async function findRunning(db: Queries, ids: string[]): Promise<Set<string>> {
  return new Set((await running(db, { ids })).map(({ id }) => id))
}
