/** A command that was started before: found by its owner, and looked up in the worker that runs it. */
import type { ExecEnd, ExecRequest, ExecResult } from '../../shared/contract/exec.ts'
import type { OutputOffset } from '../../shared/contract/exec-events.ts'
import { findExec, findStarted, type ShownExec } from '../../shared/data/execs.ts'
import type { SandboxRow } from '../../shared/data/sandboxes.ts'
import { meansAway, Problem, unavailable } from '../../shared/platform/problem.ts'
import type { OneExec } from '../../shared/rpc/calls.ts'
import type { App } from '../app.ts'
import type { Caller } from '../auth/authenticate.ts'
import { findOwn } from '../sandboxes/own.ts'
import { running } from '../sandboxes/running.ts'
import { type CallOptions, WorkerGone } from '../worker-client/client.ts'
import { lastWordOf, neverSeen, recordLost } from './rows.ts'

/** What a worker may need beyond the command's own time, in milliseconds: for the hand-over, the start, the answer. */
export const marginMs = 20_000

export interface ExecLookup {
  account: Caller
  params: { id: string; exec_id: string }
  requestId: string
  signal: AbortSignal
}

export interface KnownExec {
  sandbox: SandboxRow
  row: ShownExec
  /** The arguments of a call about it. */
  args: OneExec
  /** Of such a call: to the worker that runs it. */
  options: CallOptions & { workerId: string }
}

/** @throws {Problem} `not_found`, `exec_not_found` */
export async function findKnown(app: App, asking: ExecLookup): Promise<KnownExec> {
  const { row: sandbox } = await findOwn(app.context.db, asking.account.id, asking.params.id)
  return knownIn(app, sandbox, asking)
}

/** @throws {Problem} as {@link findKnown}, and when the sandbox does not run */
export async function findInRunning(app: App, asking: ExecLookup): Promise<KnownExec & { leftMs: number }> {
  const wait = { accountId: asking.account.id, sandboxId: asking.params.id, signal: asking.signal }
  const { row: sandbox, leftMs } = await running(app, wait)
  return { ...(await knownIn(app, sandbox, asking)), leftMs }
}

async function knownIn({ context }: App, sandbox: SandboxRow, asking: ExecLookup): Promise<KnownExec> {
  const { account, params, requestId, signal } = asking
  const row = await findExec(context.db, { sandboxId: sandbox.id, execId: params.exec_id })
  if (!row) throw new Problem('exec_not_found', 'There is no such command in this sandbox.')
  const args = { sandboxId: sandbox.id, accountId: account.id, requestId, execId: row.id }
  return { sandbox, row, args, options: { workerId: row.worker_id, signal, timeoutMs: marginMs } }
}

/** @returns undefined when the command's worker is gone, or has forgotten the command */
export async function unlessForgotten<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    if (isForgotten(error)) return undefined
    throw error
  }
}

export const isForgotten = (error: unknown): boolean =>
  error instanceof WorkerGone || (error instanceof Problem && error.code === 'exec_not_found')

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
 * What can be told of a command after its worker was lost. It is written into the row before it is told; while that is
 * impossible, nothing is told of its end.
 * @param printed how many bytes of it the client got
 * @throws {Problem} `unavailable`
 */
export async function lastWord(
  { context }: App,
  started: StartedExec,
  printed?: OutputOffset,
): Promise<ExecEnd> {
  const { db } = context
  try {
    const { row: sandbox } = await findOwn(db, started.accountId, started.sandboxId)
    const find = () => findStarted(db, { ...started, key: started.key })
    let row = await find()
    if (!row && started.request && !sandbox.destroyed_at) {
      await recordLost(context, { ...started, request: started.request })
      row = await find()
    }
    return row
      ? await lastWordOf(db, row, sandbox, printed)
      : neverSeen(started.execId, started.startedAt, sandbox)
  } catch (error) {
    throw meansAway(error)
      ? unavailable(
          `The worker of this command was lost. What came of it is not known yet: see the sandbox's commands.`,
          error,
        )
      : error
  }
}

/** The end as a result. Its output, if there was any, is gone. */
export const withoutOutput = (ended: ExecEnd): ExecResult => ({
  ...ended,
  stdout: '',
  stderr: '',
  lossy: false,
  truncated: ended.truncated || ended.stdout_bytes + ended.stderr_bytes > 0,
})
