import { setTimeout as sleep } from 'node:timers/promises'
import { podOf } from '../../shared/data/sandboxes.ts'
import { Problem, unavailable } from '../../shared/platform/problem.ts'
import type { CallHandler } from '../rpc/call.ts'
import { type EnteredSandbox, enter, reachPod, runInside } from '../sandbox/enter.ts'
import type { ExecContext } from './context.ts'

/** Killed processes take some time to exit. */
const retryMs = 100
/** How long to retry. A fork bomb keeps the node busy, so the verification command may start late. */
const retryBudgetMs = 15_000

/**
 * Kills all processes of the sandbox, then runs `true` in it to verify the reset. The sandbox's own report is
 * not trusted.
 */
export const resetSandbox: CallHandler<'resetSandbox', ExecContext> = async (args, worker, { signal }) => {
  const { sandbox } = await enter(worker, args)
  const until = performance.now() + retryBudgetMs
  for (;;) {
    try {
      worker.slots.drop(sandbox.id)
      await reachPod(worker, sandbox, (now) => worker.driver.endProcesses(podOf(now)))
      await runTrue(worker, sandbox, signal)
      return {}
    } catch (error) {
      if (!isTransient(error) || performance.now() > until || signal.aborted) throw error
    }
    await sleep(retryMs)
  }
}

const isTransient = (error: unknown) =>
  error instanceof Problem && (error.code === 'sandbox_exhausted' || error.code === 'unavailable')

async function runTrue(worker: ExecContext, sandbox: EnteredSandbox['sandbox'], signal: AbortSignal) {
  const io = { onStdout() {}, onStderr() {} }
  const end = await runInside(worker, sandbox, { argv: ['true'], cwd: '/', noStdin: true }, io, {
    timeoutMs: 10_000,
    signal,
  })
  if (end.kind !== 'exited')
    throw unavailable('The sandbox was reset, but did not run a test command afterwards. Try again.')
}
