/** The call that ends all processes of a sandbox. */
import { setTimeout as sleep } from 'node:timers/promises'
import { podOf } from '../../shared/data/sandboxes.ts'
import { Problem, unavailable } from '../../shared/platform/problem.ts'
import type { CallHandler } from '../rpc/call.ts'
import { type EnteredSandbox, enter, reachPod, runInside } from '../sandbox/enter.ts'
import type { ExecContext } from './context.ts'

/** Milliseconds between two tries: processes that were killed go a little later. */
const againMs = 100
/** Milliseconds of trying. A fork bomb keeps the node busy, so our own shell has to wait. */
const retryBudgetMs = 15_000

/** Ends all processes, and runs a command of its own: what the sandbox says of itself is not enough. */
export const resetSandbox: CallHandler<'resetSandbox', ExecContext> = async (args, worker, { signal }) => {
  const { sandbox } = await enter(worker, args)
  const until = performance.now() + retryBudgetMs
  for (;;) {
    try {
      // They end with all the others.
      worker.slots.drop(sandbox.id)
      await reachPod(worker, sandbox, (now) => worker.driver.endProcesses(podOf(now)))
      await runTrue(worker, sandbox, signal)
      return {}
    } catch (error) {
      if (!mayPass(error) || performance.now() > until || signal.aborted) throw error
    }
    await sleep(againMs)
  }
}

const mayPass = (error: unknown) =>
  error instanceof Problem && (error.code === 'sandbox_exhausted' || error.code === 'unavailable')

async function runTrue(worker: ExecContext, sandbox: EnteredSandbox['sandbox'], signal: AbortSignal) {
  const io = { onStdout() {}, onStderr() {} }
  const end = await runInside(worker, sandbox, { argv: ['true'], cwd: '/', noStdin: true }, io, {
    timeoutMs: 10_000,
    signal,
  })
  if (end.kind !== 'exited') throw unavailable('No command ran in the sandbox after its reset. Try again.')
}
