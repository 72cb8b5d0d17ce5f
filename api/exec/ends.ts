/**
 * What may be told of how a command ended: its row decides. An end that nobody knows is written into the row before it is
 * told. So a lost command stays lost when its worker comes back, and the sweep ends what may still run.
 */
import type { ExecEnd, ExecRequest, ExecResult } from '../../shared/contract/exec.ts'
import { eventIdOf, type OutputOffset, offsetOf } from '../../shared/contract/exec-events.ts'
import { formatEvent } from '../../shared/contract/server-sent-events.ts'
import type { Queries } from '../../shared/data/database.ts'
import { insertLostExec, markLost } from '../../shared/data/exec-writes.ts'
import {
  commandSealContext,
  findExec,
  findStarted,
  oneLine,
  type ShownExec,
  workerLost,
} from '../../shared/data/execs.ts'
import type { OwnSandbox } from '../../shared/data/sandboxes.ts'
import type { Context } from '../../shared/platform/context.ts'
import { meansAway, type Problem, unavailable } from '../../shared/platform/problem.ts'
import type { App } from '../app.ts'
import { findOwn } from '../sandboxes/own.ts'

/** What is known without asking the worker: a command that runs there is `running`. */
export async function findEnd(
  { context: { db }, workers }: App,
  row: ShownExec,
  sandbox: OwnSandbox,
): Promise<ExecEnd> {
  const isGone = row.status === 'running' && !sandbox.destroyed_at && !(await workers.isThere(row.worker_id))
  return isGone ? endAsLost(db, row, sandbox) : readRow(row, sandbox)
}

/** The end that stands in the row. A worker that was taken for lost and is back may tell another one. */
export function preferRow<T extends ExecEnd>(told: T, row: ShownExec): T {
  if (row.status === 'running') return told
  const { status, exit_code, signal, reason } = row
  const truncated = told.truncated || row.truncated
  const duration_ms = row.duration_ms ?? told.duration_ms
  return { ...told, status, exit_code, signal, reason, truncated, duration_ms }
}

export interface StartedExec {
  accountId: string
  sandboxId: string
  execId: string
  /** The Idempotency-Key, under which it may run with another id. */
  key?: string | undefined
  startedAt: Date
  /** The request, if it was handed over just now: the command may not have started, and then never does. */
  request?: ExecRequest
}

/**
 * What can be told of a command after its worker was lost. While its row cannot be written, nothing is told of its end.
 * @param printed how many bytes of it the client got
 * @throws {Problem} `unavailable`
 */
export async function endWithoutWorker(
  { context }: App,
  started: StartedExec,
  printed?: OutputOffset,
): Promise<ExecEnd> {
  const { db } = context
  try {
    const sandbox = await findOwn(db, started.accountId, started.sandboxId)
    const find = () => findStarted(db, { ...started, key: started.key })
    let row = await find()
    if (!row && started.request && !sandbox.destroyed_at) {
      await insertLost(context, { ...started, request: started.request })
      row = await find()
    }
    return row
      ? await endAsLost(db, row, sandbox, printed)
      : describeUnseen(started.execId, started.startedAt, sandbox)
  } catch (error) {
    throw meansAway(error) ? unknownYet(started, error) : error
  }
}

/** Under an Idempotency-Key the id may be another one, which only the database knows. */
function unknownYet({ key, execId }: StartedExec, cause: unknown): Problem {
  const lost =
    'The worker of this command was lost, and the database that keeps its exit status is unavailable.'
  return key === undefined
    ? unavailable(`${lost} Get the command later by exec_id.`, cause, { exec_id: execId })
    : unavailable(`${lost} Repeat the request with its Idempotency-Key.`, cause)
}

/** The end as a result. Its output, if there was any, is gone. */
export const withoutOutput = (ended: ExecEnd): ExecResult => ({
  ...ended,
  stdout: '',
  stderr: '',
  lossy: false,
  truncated: ended.truncated || ended.stdout_bytes + ended.stderr_bytes > 0,
})

const noBytes: Buffer = Buffer.alloc(0)

/** The end as events, behind the output that the client missed. @param lastEventId undefined when it got no event */
export function writeLastEvents(known: ExecEnd, lastEventId: string | undefined): Buffer {
  const { stdout, stderr } = offsetOf(lastEventId)
  // Never counts less output than the client got.
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

/** Ends a command whose worker is gone, or has forgotten it, as lost, unless its row says how it ended. */
async function endAsLost(
  db: Queries,
  row: ShownExec,
  sandbox: OwnSandbox,
  printed: OutputOffset = { stdout: 0, stderr: 0 },
): Promise<ExecEnd> {
  const told = readRow(row, sandbox)
  if (told.status !== 'running') return told
  const lost = await markLost(db, { id: row.id, sandboxId: sandbox.id }, printed)
  const ended = lost ?? (await findExec(db, { sandboxId: sandbox.id, execId: row.id }))
  return ended ? readRow(ended, sandbox) : describeUnseen(row.id, row.started_at, sandbox)
}

/** Writes that a command is lost which was handed over and has no row. */
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

/** The end of a command that was handed over and has no row: nothing is known of it, so nothing is claimed. */
const describeUnseen = (id: string, startedAt: Date, sandbox: OwnSandbox): ExecEnd => ({
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

function readRow(row: ShownExec, sandbox: OwnSandbox): ExecEnd {
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
