/** Commands as their rows describe them: what they were and how they ended, without their output. */
import type { ExecEnd, ExecRequest, ExecSummary } from '../../shared/contract/exec.ts'
import type { OutputOffset } from '../../shared/contract/exec-events.ts'
import type { Queries } from '../../shared/data/database.ts'
import { commandSealContext, findExec, oneLine, type ShownExec } from '../../shared/data/execs.ts'
import { insertLostExec, markLost, workerLost } from '../../shared/data/lost-execs.ts'
import type { SandboxRow } from '../../shared/data/sandboxes.ts'
import type { Context } from '../../shared/platform/context.ts'
import type { App } from '../app.ts'

/** What is known without asking the worker: a command that runs there is `running`. */
export async function summarize(
  { context: { db }, workers }: App,
  row: ShownExec,
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
  row: ShownExec,
  sandbox: SandboxRow,
  printed: OutputOffset = { stdout: 0, stderr: 0 },
): Promise<ExecEnd> {
  const told = fromRow(row, sandbox)
  if (told.status !== 'running') return told
  const lost = await markLost(db, { id: row.id, sandboxId: sandbox.id }, printed)
  const ended = lost ?? (await findExec(db, { sandboxId: sandbox.id, execId: row.id }))
  return ended ? fromRow(ended, sandbox) : neverSeen(row.id, row.started_at, sandbox)
}

/** Writes that a command is lost which was handed over and has no row. */
export async function recordLost(
  { db, lines }: Context,
  of: { execId: string; sandboxId: string; startedAt: Date; request: ExecRequest },
): Promise<void> {
  const { command, background, tty } = of.request
  await insertLostExec(db, {
    id: of.execId,
    sandboxId: of.sandboxId,
    sealedCommand: lines.seal(oneLine(command), commandSealContext(of.execId)),
    background: (background || tty) ?? false,
    tty: tty ?? false,
    startedAt: of.startedAt,
    durationMs: since(of.startedAt),
  })
}

/** The end that stands in the row. A worker that was taken for lost and is back may tell another one. */
export function asWritten<T extends ExecEnd>(told: T, row: ShownExec): T {
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
export const describeCommand = ({ lines }: Context, row: ShownExec) =>
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

function fromRow(row: ShownExec, sandbox: SandboxRow): ExecEnd {
  const startedAt = row.started_at
  const told: ExecEnd = {
    id: row.id,
    status: row.status,
    exit_code: row.exit_code,
    signal: row.signal,
    stdout_bytes: row.stdout_bytes,
    stderr_bytes: row.stderr_bytes,
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

const since = (time: Date): number => Math.max(0, Date.now() - time.getTime())
