import type { ExecSummary } from '../../shared/contract/exec.ts'
import { commandSealContext, findExec, type ShownExec } from '../../shared/data/execs.ts'
import type { SandboxOfAccount } from '../../shared/data/sandboxes.ts'
import { Problem } from '../../shared/platform/problem.ts'
import type { OneExec } from '../../shared/rpc/calls.ts'
import type { App } from '../app.ts'
import type { Caller } from '../auth/authenticate.ts'
import { awaitRunning, loadSandbox } from '../sandboxes/load-sandbox.ts'
import { type CallOptions, WorkerGone } from '../worker-client/client.ts'
import { findExitStatus, type RequestIds } from './exit-status.ts'

/** Time that the API waits for the worker's response in addition to the command's maximum duration. */
export const marginMs = 20_000

interface ExecLookup {
  account: Caller
  params: { id: string; exec_id: string }
  requestId: string
  signal: AbortSignal
}

interface LoadedExec {
  sandbox: SandboxOfAccount
  row: ShownExec
  args: OneExec
  options: CallOptions & { workerId: string }
}

/** @throws {Problem} `not_found` or `exec_not_found` */
export async function loadExec(app: App, asking: ExecLookup): Promise<LoadedExec> {
  const sandbox = await loadSandbox(app.context.db, asking.account.id, asking.params.id)
  return loadInSandbox(app, sandbox, asking)
}

/** @throws {Problem} the same errors as {@link loadExec}, or an error if the sandbox is not running */
export async function loadExecInRunningSandbox(
  app: App,
  asking: ExecLookup,
): Promise<LoadedExec & { leftMs: number }> {
  const wait = { accountId: asking.account.id, sandboxId: asking.params.id, signal: asking.signal }
  const { sandbox, leftMs } = await awaitRunning(app, wait)
  return { ...(await loadInSandbox(app, sandbox, asking)), leftMs }
}

async function loadInSandbox(
  { context }: App,
  sandbox: SandboxOfAccount,
  asking: ExecLookup,
): Promise<LoadedExec> {
  const { account, params, requestId, signal } = asking
  const row = await findExec(context.db, { sandboxId: sandbox.id, execId: params.exec_id })
  if (!row) throw new Problem('exec_not_found', 'The sandbox has no command with this id.')
  const args = { sandboxId: sandbox.id, accountId: account.id, requestId, execId: row.id }
  return { sandbox, row, args, options: { workerId: row.worker_id, signal, timeoutMs: marginMs } }
}

/**
 * Returns the result of a call to a command's worker, or undefined if the worker is gone or no longer retains
 * the command.
 */
export const unlessForgotten = <T>(work: Promise<T>): Promise<T | undefined> =>
  work.catch((error) => {
    if (isForgotten(error)) return undefined
    throw error
  })

export const isForgotten = (error: unknown): boolean =>
  error instanceof WorkerGone || (error instanceof Problem && error.code === 'exec_not_found')

export async function summarize(
  app: App,
  row: ShownExec,
  sandbox: SandboxOfAccount,
  ids: RequestIds,
): Promise<ExecSummary> {
  const { lines } = app.context
  return {
    ...(await findExitStatus(app, row, sandbox, ids)),
    command: openLine(() => lines.open(row.sealed_command, commandSealContext(row.id))),
    background: row.background,
    tty: row.tty,
  }
}

const pidsMs = 1_000

/**
 * Returns the pids of running commands by command id. Omits commands whose workers do not respond within a
 * second.
 */
export async function findPids(
  { workers }: App,
  rows: ShownExec[],
  sandbox: SandboxOfAccount,
  { signal, ...ids }: RequestIds & { signal: AbortSignal },
): Promise<Record<string, number | null>> {
  if (sandbox.destroyed_at) return {}
  const running = rows.filter(({ status }) => status === 'running')
  const workerIds = new Set(running.map(({ worker_id }) => worker_id))
  const args = { ...ids, sandboxId: sandbox.id }
  const found = [...workerIds].map((workerId) =>
    workers.call('runningPids', args, { workerId, signal, timeoutMs: pidsMs }).catch(() => ({})),
  )
  return Object.assign({}, ...(await Promise.all(found)))
}

/** Decrypts a command line. Returns an empty string if the encryption key is no longer configured. */
function openLine(open: () => string): string {
  try {
    return open()
  } catch {
    return ''
  }
}
