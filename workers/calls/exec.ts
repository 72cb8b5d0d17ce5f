import { constants } from 'node:os'
import type { ExecResult } from '../../shared/contract/exec.ts'
import { limits } from '../../shared/contract/limits.ts'
import { findSandbox } from '../../shared/sandboxes.ts'
import type { WorkerContext } from '../context.ts'
import { BoundedOutput } from '../shell/output.ts'
import type { RunEnd } from '../shell/run.ts'
import type { Call } from './call.ts'
import { enter, environmentOf, runInside } from './inside.ts'

/** Runs a client's command and answers when it has ended. */
export const exec: Call<'exec'> = async (args, worker, signal) => {
  const { request, execId, requestId, sandboxId, accountId } = args
  const { sandbox, leftMs } = await enter(worker, args)
  const stdout = new BoundedOutput(limits.outputBytes)
  const stderr = new BoundedOutput(limits.outputBytes)
  const startedAt = new Date()
  const started = performance.now()
  const end = await runInside(
    worker,
    sandbox,
    {
      argv: typeof request.command === 'string' ? ['/bin/sh', '-c', request.command] : request.command,
      cwd: request.cwd,
      env: { ...environmentOf(worker, sandbox), ...request.env },
    },
    {
      stdin: request.stdin === undefined ? undefined : Buffer.from(request.stdin),
      onStdout: (chunk) => stdout.push(chunk),
      onStderr: (chunk) => stderr.push(chunk),
    },
    { timeoutMs: Math.min(request.timeout_ms ?? limits.execTimeoutMs, leftMs), signal },
  )
  const ending = await describeEnd(worker, sandboxId, end)
  const durationMs = Math.round((performance.now() - started) * 1000) / 1000
  worker.metrics.execs.observe({ status: ending.status }, durationMs / 1000)
  worker.log.info(
    {
      exec_id: execId,
      request_id: requestId,
      sandbox_id: sandboxId,
      account_id: accountId,
      status: ending.status,
      ms: Math.round(durationMs),
    },
    'a command ended',
  )
  return {
    id: execId,
    ...ending,
    stdout: stdout.toString(),
    stderr: stderr.toString(),
    stdout_bytes: stdout.bytes,
    stderr_bytes: stderr.bytes,
    truncated: stdout.truncated || stderr.truncated,
    started_at: startedAt.toISOString(),
    duration_ms: durationMs,
  }
}

type Ending = Pick<ExecResult, 'status' | 'exit_code' | 'signal'>

async function describeEnd(worker: WorkerContext, sandboxId: string, end: RunEnd): Promise<Ending> {
  const unknown = { exit_code: null, signal: null }
  if (end.kind === 'timed_out') return { status: 'timed_out', ...unknown }
  if (end.kind === 'cancelled') return { status: 'killed', ...unknown }
  // A sandbox that ends takes its commands with it; whatever status they left is no news of theirs.
  const sandbox = end.kind === 'lost' || end.code > 128 ? await findSandbox(worker.db, sandboxId) : undefined
  if (sandbox?.destroyed_at) return { status: 'killed', ...unknown }
  if (end.kind === 'lost') return { status: 'lost', ...unknown }
  const signal = signalOf(end.code)
  return { status: signal ? 'signaled' : 'exited', exit_code: end.code, signal }
}

/**
 * A shell reports the death of its command by signal n as 128 + n, and cannot tell it from an exit
 * with that status: so every status that could be one is taken for one.
 */
function signalOf(code: number): string | null {
  const number = code - 128
  const found = Object.entries(constants.signals).find(([, value]) => value === number)
  return found?.[0] ?? null
}
