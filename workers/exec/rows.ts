/** Inserts a command's row before the command starts, and stores the exit status in the row afterwards. */
import type { ExecOutcome } from '../../shared/contract/exec.ts'
import { type DatabaseClock, readOf } from '../../shared/data/clock.ts'
import { type Queries, requestTimeouts } from '../../shared/data/database.ts'
import {
  confirmExited,
  insertExec,
  writeExit,
  writeExitUnconditionally,
} from '../../shared/data/exec-writes.ts'
import {
  commandSealContext,
  findDestroyReasonOfExec,
  findExecByKey,
  oneLine,
} from '../../shared/data/execs.ts'
import type { Context } from '../../shared/platform/context.ts'
import { unavailable } from '../../shared/platform/problem.ts'
import { hashOfRequest, isHashOf } from '../../shared/platform/request-hash.ts'
import type { StartExec } from '../../shared/rpc/calls.ts'
import { type ExitStatus, withoutExitCode } from './command.ts'
import { notRun, type RefusedExecs } from './refused-execs.ts'

export interface ExistingExec {
  id: string
  workerId: string
  isSameRequest: boolean
}

/**
 * Inserts a command's row. After an error, the insert may have been committed or may still be running, so the
 * row is deleted repeatedly until the deadline after which PostgreSQL ignores the insert.
 * @returns the existing command with the same Idempotency-Key, or undefined if there is none
 * @throws {Problem} `unavailable` if the command was already reported as lost, or the insert took too long
 */
export async function recordStart(
  worker: Pick<Context, 'db' | 'lines' | 'settings'> & { id: string; refusedExecs: RefusedExecs },
  { execId, sandboxId, accountId, idempotencyKey, request }: StartExec,
  { pid, clock }: { pid: number | null; clock: DatabaseClock },
): Promise<ExistingExec | undefined> {
  const { db, lines, settings, id: workerId, refusedExecs } = worker
  const hash = idempotencyKey ? hashOfRequest(request, settings.rpcKeys) : null
  const isBackground = (request.background || request.tty) ?? false
  const endsMs = readOf(clock) + requestTimeouts.statement
  const started = {
    id: execId,
    sandboxId,
    workerId,
    pid,
    idempotencyKey: idempotencyKey ?? null,
    requestHash: hash,
    sealedCommand: lines.seal(oneLine(request.command), commandSealContext(execId)),
    background: isBackground,
    tty: request.tty ?? false,
    endsMs,
  }
  const isInserted = await insertExec(db.share(accountId), started).catch((error) => {
    void refusedExecs.deleteRow(execId, endsMs + requestTimeouts.statement)
    throw error
  })
  if (isInserted) return undefined
  const known = await findExecByKey(db, { sandboxId, key: idempotencyKey ?? null })
  if (!known)
    throw unavailable(
      'This command was reported as lost, or took too long to start. It was not run. Try again.',
    )
  if (refusedExecs.has(known.id)) throw notRun()
  return {
    id: known.id,
    workerId: known.worker_id,
    isSameRequest: isHashOf(known.request_hash, request, settings.rpcKeys),
  }
}

/**
 * Stores the exit status unless the row already has a different one, which clients may have received.
 * @returns the exit status to report instead, or undefined if `end` was stored
 */
export async function recordExit(db: Queries, end: ExecOutcome): Promise<ExitStatus | undefined> {
  if (await writeExit(db, end)) return undefined
  const sandbox = await findDestroyReasonOfExec(db, end.id)
  if (sandbox) {
    const killed = withoutExitCode('killed', sandbox.destroy_reason)
    if (await writeExitUnconditionally(db, { ...end, ...killed })) return killed
  }
  // The reconciler need not kill a command that has ended.
  return await confirmExited(db, end.id, end.status === 'lost')
}
