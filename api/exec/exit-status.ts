/**
 * The exit status that clients see: the row of a command decides. `lost` is committed before it is reported, so a lost
 * command stays lost when its worker is back, and the reconciler ends processes that still run.
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

/** Ids for the log: of the account, and of the request that finds a command lost. */
export interface Asking {
  accountId: string
  requestId: string
}

/** Returns the exit status in the row, or `running`. Stores `lost` if the worker of a running command is gone. */
export async function findExitStatus(
  { context, workers }: App,
  row: ShownExec,
  sandbox: SandboxOfAccount,
  asking: Asking,
): Promise<ExecOutcome> {
  const isGone = row.status === 'running' && !sandbox.destroyed_at && !(await workers.isAlive(row.worker_id))
  return isGone ? endAsLost(context, row, sandbox, asking) : readRow(row, sandbox)
}

/** Prefers the exit status in the row: a worker that was considered lost may report another one. */
export function preferRow<T extends ExecOutcome>(reported: T, row: ShownExec): T {
  if (row.status === 'running') return reported
  const { status, exit_code, signal, reason } = row
  const truncated = reported.truncated || row.truncated
  const duration_ms = row.duration_ms ?? reported.duration_ms
  return { ...reported, status, exit_code, signal, reason, truncated, duration_ms }
}

export interface StartedExec {
  accountId: string
  sandboxId: string
  execId: string
  requestId: string
  /** The worker that took it, if it is not the one in the row. */
  workerId?: string | undefined
  /** The Idempotency-Key, under which it may run with another id. */
  key?: string | undefined
  startedAt: Date
  /** The request, if it was just handed over: a command that has not started by now never does. */
  request?: ExecRequest
}

/**
 * The exit status of a command whose worker was lost, once the row has it.
 * @param printed how many bytes of output the client received
 * @throws {Problem} `unavailable`
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

/** Under an Idempotency-Key, only the database knows the id. */
function unknownYet({ key, execId }: StartedExec, cause: unknown): Problem {
  const lost = 'The worker of this command was lost, and the database with its exit status is unavailable.'
  return key === undefined
    ? unavailable(`${lost} Get the command later by exec_id.`, cause, { exec_id: execId })
    : unavailable(`${lost} Repeat the request with its Idempotency-Key.`, cause)
}

/** The exit status as a result without output. */
export const withoutOutput = (ended: ExecOutcome): ExecResult => ({
  ...ended,
  stdout: '',
  stderr: '',
  lossy: false,
  truncated: ended.truncated || ended.stdout_bytes + ended.stderr_bytes > 0,
})

const noBytes: Buffer = Buffer.alloc(0)

/** The exit status as events, after a gap for output that the client missed. @param lastEventId of its last event */
export function writeLastEvents(known: ExecOutcome, lastEventId: string | undefined): Buffer {
  const { stdout, stderr } = offsetOf(lastEventId)
  // Never counts less output than the client received.
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
  return Buffer.concat([
    lastEventId === undefined ? Buffer.from(formatEvent('0-0', 'start', { id: ended.id })) : noBytes,
    missed.stdout_bytes + missed.stderr_bytes > 0 ? Buffer.from(formatEvent(id, 'gap', missed)) : noBytes,
    Buffer.from(formatEvent(id, 'exit', ended)),
  ])
}

/** Marks a command as lost whose worker no longer knows it, unless its row has an exit status. */
async function endAsLost(
  context: Context,
  row: ShownExec,
  sandbox: SandboxOfAccount,
  asking: Asking,
  printed: OutputOffset = { stdout: 0, stderr: 0 },
): Promise<ExecOutcome> {
  const outcome = readRow(row, sandbox)
  if (outcome.status !== 'running') return outcome
  const { db } = context
  const lost = await markLost(db, { id: row.id, sandboxId: sandbox.id }, printed)
  if (lost?.status === 'lost')
    warnOfLoss(context, { ...asking, sandboxId: sandbox.id, execId: row.id, workerId: row.worker_id })
  const ended = lost ?? (await findExec(db, { sandboxId: sandbox.id, execId: row.id }))
  return ended ? readRow(ended, sandbox) : describeUnseen(row.id, row.started_at, sandbox)
}

interface Loss extends Asking {
  sandboxId: string
  execId: string
  workerId?: string | undefined
}

/** Logs a command that its worker reported as lost, with the id of the worker, which only the row has. */
export async function warnOfReportedLoss({ context }: App, loss: Loss): Promise<void> {
  const row = await findExec(context.db, loss).catch(() => undefined)
  warnOfLoss(context, { ...loss, workerId: row?.worker_id })
}

/** Logs a lost command: once, by the process that stores or receives that status. */
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

/** Inserts a lost row for a command that was handed over and has none. */
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

/** The exit status of a command that was handed over and has no row. */
const describeUnseen = (id: string, startedAt: Date, sandbox: SandboxOfAccount): ExecOutcome => ({
  id,
  ...(sandbox.destroyed_at
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

function readRow(row: ShownExec, sandbox: SandboxOfAccount): ExecOutcome {
  const startedAt = row.started_at
  const outcome: ExecOutcome = {
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
  if (row.status !== 'running' || !sandbox.destroyed_at) return outcome
  // The worker was lost before the sandbox was destroyed, so it stored no exit status.
  const duration_ms = Math.max(0, sandbox.destroyed_at.getTime() - startedAt.getTime())
  return {
    ...outcome,
    status: 'killed',
    reason: sandbox.destroy_reason ?? null,
    truncated: true,
    duration_ms,
  }
}

const since = (time: Date): number => Math.max(0, Date.now() - time.getTime())
