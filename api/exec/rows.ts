/** Commands as their rows describe them: what they were and how they ended, without their output. */
import type { ExecEnd, ExecRequest, ExecResult, ExecSummary } from '../../shared/contract/exec.ts'
import type { OutputOffset } from '../../shared/contract/exec-events.ts'
import type { Queries, Row } from '../../shared/data/database.ts'
import { commandSealContext, endUnknown, noWorker, oneLine, workerLost } from '../../shared/data/execs.ts'
import type { SandboxRow } from '../../shared/data/sandboxes.ts'
import type { Context } from '../../shared/platform/context.ts'
import type { App } from '../app.ts'

export interface ExecRow extends Row {
  id: string
  worker_id: string
  sealed_command: Uint8Array
  background: boolean
  tty: boolean
  status: ExecResult['status']
  exit_code: number | null
  signal: string | null
  reason: string | null
  /** bigint: a string. */
  stdout_bytes: string
  stderr_bytes: string
  truncated: boolean
  started_at: string | Date
  duration_ms: number | null
}

export async function findExec(
  db: Queries,
  { sandboxId, execId }: { sandboxId: string; execId: string },
): Promise<ExecRow | undefined> {
  const [row] = await db.query<ExecRow>('select * from exec where sandbox_id = ? and id = ?', [
    sandboxId,
    execId,
  ])
  return row
}

/** The command that a request asked for: under its own id, or the one that runs under its Idempotency-Key. */
export async function findStarted(
  db: Queries,
  { sandboxId, execId, key }: { sandboxId: string; execId: string; key: string | undefined },
): Promise<ExecRow | undefined> {
  const [row] = await db.query<ExecRow>(
    'select * from exec where sandbox_id = ? and (id = ? or idempotency_key = ?)',
    [sandboxId, execId, key ?? null],
  )
  return row
}

/** The commands of a sandbox, newest first. @param page.before the id that the previous page ended with */
export const listExecRows = (
  db: Queries,
  sandboxId: string,
  page: { limit: number; before: string | null },
): Promise<ExecRow[]> =>
  db.query<ExecRow>(
    `select * from exec where sandbox_id = ? and (?::text is null or id < ?) order by id desc limit ?`,
    [sandboxId, page.before, page.before, page.limit],
  )

/** What is known without asking the worker: a command that runs there is `running`. */
export async function summarize(
  { context: { db }, workers }: App,
  row: ExecRow,
  sandbox: SandboxRow,
): Promise<ExecEnd> {
  const isGone = row.status === 'running' && !sandbox.destroyed_at && !(await workers.isThere(row.worker_id))
  return isGone ? lastWordOf(db, row, sandbox) : fromRow(row, sandbox)
}

/**
 * What is known of a command whose worker is gone, or has forgotten it. That it is lost is written into the row before
 * it is told. So it stays lost when the worker comes back, and the sweep ends what may still run.
 * @param printed how many bytes of it the client got
 */
export async function lastWordOf(
  db: Queries,
  row: ExecRow,
  sandbox: SandboxRow,
  printed: OutputOffset = { stdout: 0, stderr: 0 },
): Promise<ExecEnd> {
  const told = fromRow(row, sandbox)
  if (told.status !== 'running') return told
  const [lost] = await db.query<ExecRow>(
    `${endUnknown(', stdout_bytes = ?, stderr_bytes = ?, is_left = destroyed_at is null')} returning exec.*`,
    [sandbox.id, workerLost, printed.stdout, printed.stderr, row.id],
  )
  const ended = lost ?? (await findExec(db, { sandboxId: sandbox.id, execId: row.id }))
  return ended ? fromRow(ended, sandbox) : neverSeen(row.id, new Date(row.started_at), sandbox)
}

/**
 * Inserts the row of a command that was handed over and has none, as lost. The worker inserts its own row before it
 * starts the command, and cannot once this one is there: so no command runs after a client was told that it is lost.
 * Does nothing where the worker was quicker.
 */
export async function recordLost(
  { db, lines }: Context,
  of: { execId: string; sandboxId: string; startedAt: Date; request: ExecRequest },
): Promise<void> {
  const { command, background, tty } = of.request
  await db.query(
    `insert into exec (id, sandbox_id, worker_id, sealed_command, background, tty, status, reason, truncated,
                       started_at, duration_ms)
     values (?, ?, ?, ?, ?, ?, 'lost', ?, true, ?, ?) on conflict do nothing`,
    [
      of.execId,
      of.sandboxId,
      noWorker,
      lines.seal(oneLine(command), commandSealContext(of.execId)),
      (background || tty) ?? false,
      tty ?? false,
      workerLost,
      of.startedAt,
      since(of.startedAt),
    ],
  )
}

/** The end that stands in the row. A worker that was taken for lost and is back may tell another one. */
export function asWritten<T extends ExecEnd>(told: T, row: ExecRow): T {
  if (row.status === 'running') return told
  const { status, exit_code, signal, reason } = row
  const truncated = told.truncated || row.truncated
  const duration_ms = row.duration_ms ?? told.duration_ms
  return { ...told, status, exit_code, signal, reason, truncated, duration_ms }
}

/** The end of a command that was handed over and has no row: nothing is known of it, so nothing is claimed. */
export const neverSeen = (id: string, startedAt: Date, sandbox?: SandboxRow): ExecEnd => ({
  id,
  ...(sandbox?.destroyed_at
    ? { status: 'killed', reason: sandbox.destroy_reason ?? null }
    : { status: 'lost', reason: workerLost }),
  exit_code: null,
  signal: null,
  stdout_bytes: 0,
  stderr_bytes: 0,
  truncated: true,
  started_at: startedAt.toISOString(),
  duration_ms: since(startedAt),
})

/** What a list shows of a command. */
export const describeCommand = ({ lines }: Context, row: ExecRow) =>
  ({
    command: opened(() => lines.open(row.sealed_command, commandSealContext(row.id))),
    background: row.background,
    tty: row.tty,
  }) satisfies Partial<ExecSummary>

/** A command line whose key is gone is shown empty; the list is shown all the same. */
function opened(open: () => string): string {
  try {
    return open()
  } catch {
    return ''
  }
}

function fromRow(row: ExecRow, sandbox: SandboxRow): ExecEnd {
  const startedAt = new Date(row.started_at)
  const told: ExecEnd = {
    id: row.id,
    status: row.status,
    exit_code: row.exit_code,
    signal: row.signal,
    stdout_bytes: Number(row.stdout_bytes),
    stderr_bytes: Number(row.stderr_bytes),
    truncated: row.truncated,
    started_at: startedAt.toISOString(),
    duration_ms: row.duration_ms ?? (row.status === 'running' ? since(startedAt) : 0),
    reason: row.reason,
  }
  if (row.status !== 'running' || !sandbox.destroyed_at) return told
  // The worker that would have written its end was gone before. The command ended with its sandbox.
  const duration_ms = Math.max(0, sandbox.destroyed_at.getTime() - startedAt.getTime())
  return { ...told, status: 'killed', reason: sandbox.destroy_reason ?? null, truncated: true, duration_ms }
}

const since = (time: string | Date): number => Math.max(0, Date.now() - new Date(time).getTime())
