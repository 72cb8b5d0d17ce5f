/** Commands as their rows tell of them: what they were and how they ended, without their output. */
import type { Context } from '../shared/context.ts'
import type { ExecResult, ExecSummary } from '../shared/contract/exec.ts'
import type { Queries, Row } from '../shared/database/index.ts'
import { commandPlace } from '../shared/execs.ts'
import type { SandboxRow } from '../shared/sandboxes.ts'
import type { Workers } from './workers.ts'

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
export async function summarize(workers: Workers, row: ExecRow, sandbox: SandboxRow): Promise<Ended> {
  const isGone = row.status === 'running' && !sandbox.destroyed_at && !(await workers.isThere(row.worker_id))
  return isGone ? lastWordOf(row, sandbox) : fromRow(row, sandbox)
}

/** What is known of a command whose worker is gone, or knows it no more. */
export function lastWordOf(row: ExecRow, sandbox: SandboxRow): Ended {
  const told = fromRow(row, sandbox)
  if (told.status !== 'running') return told
  return { ...told, status: 'lost', reason: workerLost, duration_ms: since(told.started_at) }
}

export const workerLost = 'the worker that ran it was lost'

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
  truncated: false,
  started_at: startedAt.toISOString(),
  duration_ms: since(startedAt),
})

/** As a list shows it. */
export const describeCommand = ({ sealer }: Context, row: ExecRow) =>
  ({
    command: opened(() => sealer.open(row.sealed_command, commandPlace(row.id))),
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
    duration_ms: row.duration_ms ?? since(startedAt),
    reason: row.reason,
  }
  if (row.status !== 'running' || !sandbox.destroyed_at) return told
  // Whoever would have written its end was gone first; its sandbox has taken it along.
  const duration_ms = Math.max(0, sandbox.destroyed_at.getTime() - startedAt.getTime())
  return { ...told, status: 'killed', reason: sandbox.destroy_reason ?? null, duration_ms }
}

const since = (time: string | Date): number => Math.max(0, Date.now() - new Date(time).getTime())
