/**
 * Determines the exit statuses of commands. A command's row is authoritative: `lost` is committed before it
 * is reported, so a command stays lost even if its worker comes back.
 */
import type { ExecOutcome, ExecRequest, ExecResult } from '../../shared/contract/exec.ts'
import { eventIdOf, type OutputOffset, offsetOf } from '../../shared/contract/exec-events.ts'
import { formatEvent } from '../../shared/contract/server-sent-events.ts'
import { insertLostExec, markLost } from '../../shared/data/exec-writes.ts'
import {
  commandSealContext,
  findExec,
  findStarted,
  oneLine,
  type ShownExec,
  workerLost,
} from '../../shared/data/execs.ts'
import type { SandboxOfAccount } from '../../shared/data/sandboxes.ts'
import type { Context } from '../../shared/platform/context.ts'
import { isOutage, type Problem, unavailable } from '../../shared/platform/problem.ts'
import type { App } from '../app.ts'
import { loadSandbox } from '../sandboxes/load-sandbox.ts'

export interface RequestIds {
  accountId: string
  requestId: string
}

/** Returns the status of a running or ended command. If the command's worker is gone, stores `lost` first. */
export async function findExitStatus(
  { context, workers }: App,
  row: ShownExec,
  sandbox: SandboxOfAccount,
  ids: RequestIds,
): Promise<ExecOutcome> {
  const isGone = row.status === 'running' && !sandbox.destroyed_at && !(await workers.isAlive(row.worker_id))
  return isGone ? endAsLost(context, row, sandbox, ids) : readRow(row, sandbox)
}

/**
 * Returns the exit status in the command's row, or the reported one if the row has none. The two can differ
 * if the worker was wrongly considered lost.
 */
export function preferRow<T extends ExecOutcome>(reported: T, row: ShownExec): T {
  if (row.status === 'running') return reported
  const { status, exit_code, signal, reason, start_error } = row
  const truncated = reported.truncated || row.truncated
  const duration_ms = row.duration_ms ?? reported.duration_ms
  return { ...reported, status, exit_code, signal, reason, start_error, truncated, duration_ms }
}

export interface StartedExec {
  accountId: string
  sandboxId: string
  execId: string
  requestId: string
  workerId?: string | undefined
  /** The Idempotency-Key of the request. It identifies the command even if an earlier request started it. */
  key?: string | undefined
  startedAt: Date
  /**
   * Set if this process has just sent the request to a worker. If that worker is lost before it has inserted
   * the command's row, a `lost` row is inserted, so that the worker can no longer start the command.
   */
  request?: ExecRequest
}

/**
 * Returns the exit status of a command whose worker was lost. Stores `lost` if the row has no exit status.
 * @param printed number of bytes that the client has received from each output stream
 * @throws {Problem} `unavailable` if the database is unavailable
 */
export async function exitStatusWithoutWorker(
  { context }: App,
  started: StartedExec,
  printed?: OutputOffset,
): Promise<ExecOutcome> {
  const { db } = context
  try {
    const sandbox = await loadSandbox(db, started.accountId, started.sandboxId)
    const find = () => findStarted(db, { ...started, key: started.key })
    let row = await find()
    if (!row && started.request && !sandbox.destroyed_at) {
      await insertLost(context, { ...started, request: started.request })
      row = await find()
      if (row?.status === 'lost') warnOfLoss(context, started)
    }
    return row
      ? await endAsLost(context, row, sandbox, started, printed)
      : describeUnseen(started.execId, started.startedAt, sandbox)
  } catch (error) {
    throw isOutage(error) ? unknownYet(started, error) : error
  }
}

function unknownYet({ key, execId }: StartedExec, cause: unknown): Problem {
  const lost = 'The worker that ran this command was lost, and the database is unavailable.'
  return key === undefined
    ? unavailable(`${lost} Retrieve the command's status later with its exec_id.`, cause, { exec_id: execId })
    : unavailable(`${lost} Retry the request with the same Idempotency-Key.`, cause)
}

export const withoutOutput = (ended: ExecOutcome): ExecResult => ({
  ...ended,
  stdout: '',
  stderr: '',
  lossy: false,
  output_encoding: 'utf-8',
  truncated: ended.truncated || ended.stdout_bytes + ended.stderr_bytes > 0,
})

export function writeLastEvents(known: ExecOutcome, lastEventId: string | undefined): string {
  const { stdout, stderr } = offsetOf(lastEventId)
  // The row may count fewer bytes than the client has already received.
  const ended = {
    ...known,
    stdout_bytes: Math.max(known.stdout_bytes, stdout),
    stderr_bytes: Math.max(known.stderr_bytes, stderr),
  }
  const id = eventIdOf({ stdout: ended.stdout_bytes, stderr: ended.stderr_bytes })
  const missed = {
    stdout_bytes: ended.stdout_bytes - stdout,
    stderr_bytes: ended.stderr_bytes - stderr,
  }
  return [
    lastEventId === undefined ? formatEvent('0-0', 'start', { id: ended.id, pid: ended.pid }) : '',
    missed.stdout_bytes + missed.stderr_bytes > 0 ? formatEvent(id, 'gap', missed) : '',
    formatEvent(id, 'exit', ended),
  ].join('')
}

async function endAsLost(
  context: Context,
  row: ShownExec,
  sandbox: SandboxOfAccount,
  ids: RequestIds,
  printed: OutputOffset = { stdout: 0, stderr: 0 },
): Promise<ExecOutcome> {
  const outcome = readRow(row, sandbox)
  if (outcome.status !== 'running') return outcome
  const { db } = context
  const lost = await markLost(db, { id: row.id, sandboxId: sandbox.id }, printed)
  if (lost?.status === 'lost')
    warnOfLoss(context, { ...ids, sandboxId: sandbox.id, execId: row.id, workerId: row.worker_id })
  const ended = lost ?? (await findExec(db, { sandboxId: sandbox.id, execId: row.id }))
  return ended ? readRow(ended, sandbox) : describeUnseen(row.id, row.started_at, sandbox)
}

interface Loss extends RequestIds {
  sandboxId: string
  execId: string
  workerId?: string | undefined
}

export async function warnOfReportedLoss({ context }: App, loss: Loss): Promise<void> {
  const row = await findExec(context.db, loss).catch(() => undefined)
  warnOfLoss(context, { ...loss, workerId: row?.worker_id })
}

function warnOfLoss(
  { log }: Pick<Context, 'log'>,
  { accountId, sandboxId, execId, requestId, workerId }: Loss,
): void {
  log.warn(
    {
      account_id: accountId,
      sandbox_id: sandboxId,
      exec_id: execId,
      request_id: requestId,
      worker_id: workerId,
    },
    'a command is lost',
  )
}

async function insertLost(
  { db, lines }: Context,
  { execId, sandboxId, startedAt, request }: StartedExec & { request: ExecRequest },
): Promise<void> {
  const { command, background, tty } = request
  await insertLostExec(db, {
    id: execId,
    sandboxId,
    sealedCommand: lines.seal(oneLine(command), commandSealContext(execId)),
    background: (background || tty) ?? false,
    tty: tty ?? false,
    startedAt,
    durationMs: since(startedAt),
  })
}

const describeUnseen = (id: string, startedAt: Date, sandbox: SandboxOfAccount): ExecOutcome => ({
  id,
  pid: null,
  ...(sandbox.destroyed_at
    ? { status: 'killed', reason: sandbox.destroy_reason ?? null }
    : { status: 'lost', reason: workerLost }),
  exit_code: null,
  signal: null,
  start_error: null,
  stdout_bytes: 0,
  stderr_bytes: 0,
  truncated: true,
  started_at: startedAt.toISOString(),
  duration_ms: since(startedAt),
})

function readRow(row: ShownExec, sandbox: SandboxOfAccount): ExecOutcome {
  const startedAt = row.started_at
  const outcome: ExecOutcome = {
    id: row.id,
    pid: row.command_pid,
    status: row.status,
    exit_code: row.exit_code,
    signal: row.signal,
    start_error: row.start_error,
    stdout_bytes: row.stdout_bytes,
    stderr_bytes: row.stderr_bytes,
    truncated: row.truncated,
    started_at: startedAt.toISOString(),
    duration_ms: row.duration_ms ?? (row.status === 'running' ? since(startedAt) : 0),
    reason: row.reason,
  }
  if (row.status !== 'running' || !sandbox.destroyed_at) return outcome
  const duration_ms = Math.max(0, sandbox.destroyed_at.getTime() - startedAt.getTime())
  const reason = sandbox.destroy_reason ?? null
  return { ...outcome, status: 'killed', reason, truncated: true, duration_ms }
}

const since = (time: Date): number => Math.max(0, Date.now() - time.getTime())
