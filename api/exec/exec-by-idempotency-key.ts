import { setTimeout as sleep } from 'node:timers/promises'
import type { ExecResult } from '../../shared/contract/exec.ts'
import { findExecByKey } from '../../shared/data/execs.ts'
import { Problem } from '../../shared/platform/problem.ts'
import type { App } from '../app.ts'
import { awaitRunning, loadSandbox } from '../sandboxes/load-sandbox.ts'
import { marginMs } from './load-exec.ts'
import { resultOf } from './start.ts'

interface UnderKey {
  accountId: string
  sandboxId: string
  key: string
  requestId: string
  signal: AbortSignal
}

/** Number of lookups in the table `exec` after which a command without a row counts as never started. */
const maxReads = 6
const readEveryMs = 500

/**
 * Waits until the command with this Idempotency-Key ends, and returns its result. Meanwhile, the caller
 * counts as an attached client of the command.
 * @throws {Problem} `exec_not_found`, or an error if the sandbox is not running
 */
export async function resultUnderKey(app: App, asked: UnderKey): Promise<ExecResult> {
  const { accountId, sandboxId, key, requestId, signal } = asked
  const { leftMs } = await awaitRunning(app, asked)
  for (let read = 0; read < maxReads && !signal.aborted; read++) {
    const row = await findExecByKey(app.context.db, asked)
    if (row) {
      const one = { accountId, sandboxId, requestId, execId: row.id }
      const options = { signal, timeoutMs: leftMs + marginMs, workerId: row.worker_id }
      return resultOf(app, { ...one, wait: true }, { ...one, key, startedAt: row.started_at }, options)
    }
    await sleep(readEveryMs)
  }
  throw new Problem('exec_not_found', 'The call was interrupted before its command started.')
}

/** Kills the command with this Idempotency-Key. Does nothing if the command is not running. */
export async function stopUnderKey(app: App, asked: UnderKey): Promise<void> {
  const { accountId, sandboxId, requestId, signal } = asked
  const { db } = app.context
  await loadSandbox(db, accountId, sandboxId)
  const row = await findExecByKey(db, asked)
  if (row?.status !== 'running') return
  const one = { accountId, sandboxId, requestId, execId: row.id, signal: 'KILL' }
  await app.workers.call('stopExec', one, { signal, timeoutMs: marginMs, workerId: row.worker_id })
}
