/** Commands as their rows tell of them: what they were and how they ended, without their output. */
import type { Context } from '../shared/context.ts'
import type { ExecRequest, ExecResult, ExecSummary } from '../shared/contract/exec.ts'
import type { Queries, Row } from '../shared/database/index.ts'
import { commandPlace, endUnknown, noWorker, oneLine, workerLost } from '../shared/execs.ts'
import type { SandboxRow } from '../shared/sandboxes.ts'
import type { App } from './app.ts'

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

/** The command that a request meant: under its own id, or the one that runs under its Idempotency-Key. */
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

/** Newest first. @param page.before the id that the page before ended with */
export const listExecRows = (
  db: Queries,
  sandboxId: string,
  page: { limit: number; before: string | null },
): Promise<ExecRow[]> =>
  db.query<ExecRow>(
    `select * from exec where sandbox_id = ? and (?::text is null or id < ?) order by id desc limit ?`,
    [sandboxId, page.before, page.before, page.limit],
  )

export type Ended = Omit<ExecResult, 'stdout' | 'stderr'>

/** What is known without asking the worker; one that runs there runs. */
export async function summarize(
  { context: { db }, workers }: App,
  row: ExecRow,
  sandbox: SandboxRow,
): Promise<Ended> {
  const isGone = row.status === 'running' && !sandbox.destroyed_at && !(await workers.isThere(row.worker_id))
  return isGone ? lastWordOf(db, row, sandbox) : fromRow(row, sandbox)
}

export interface Printed {
  stdout: number
  stderr: number
}

/**
 * What is known of a command whose worker is gone, or knows it no more. That it is lost is written down before
 * it is told: it stands, also when the worker comes back, and the sweep ends what may still run.
 * @param printed how many bytes a client got of it
 */
export async function lastWordOf(
  db: Queries,
  row: ExecRow,
  sandbox: SandboxRow,
  printed: Printed = { stdout: 0, stderr: 0 },
): Promise<Ended> {
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
 * Writes down as lost what was handed over and has no row. The worker's own, which comes before the command, has no
 * place then: so what a client is told is lost runs no more. Does nothing where that was quicker.
 */
export async function takePlace(
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
      lines.seal(oneLine(command), commandPlace(of.execId)),
      (background || tty) ?? false,
      tty ?? false,
      workerLost,
      of.startedAt,
      since(of.startedAt),
    ],
  )
}

/** A worker that was taken for lost and is back may tell otherwise: how it ended stands in the row. */
export function asWritten<T extends Ended>(told: T, row: ExecRow): T {
  if (row.status === 'running') return told
  const { status, exit_code, signal, reason } = row
  const truncated = told.truncated || row.truncated
  const duration_ms = row.duration_ms ?? told.duration_ms
  return { ...told, status, exit_code, signal, reason, truncated, duration_ms }
}

/** Handed over, then silence, and no row: whether and how it ended is not known, so nothing is claimed. */
export const neverSeen = (id: string, startedAt: Date, sandbox?: SandboxRow): Ended => ({
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

/** As a list shows it. */
export const describeCommand = ({ lines }: Context, row: ExecRow) =>
  ({
    command: opened(() => lines.open(row.sealed_command, commandPlace(row.id))),
    background: row.background,
    tty: row.tty,
  }) satisfies Partial<ExecSummary>

/** A key that is gone takes the words along, not the list. */
function opened(open: () => string): string {
  try {
    return open()
  } catch {
    return ''
  }
}

function fromRow(row: ExecRow, sandbox: SandboxRow): Ended {
  const startedAt = new Date(row.started_at)
  const told: Ended = {
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
  // Whoever would have written its end was gone first; its sandbox has taken it along.
  const duration_ms = Math.max(0, sandbox.destroyed_at.getTime() - startedAt.getTime())
  return { ...told, status: 'killed', reason: sandbox.destroy_reason ?? null, truncated: true, duration_ms }
}

const since = (time: string | Date): number => Math.max(0, Date.now() - new Date(time).getTime())
