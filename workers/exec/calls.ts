import { setTimeout as sleep } from 'node:timers/promises'
import { podOf } from '../../shared/data/sandboxes.ts'
import { untilAborted } from '../../shared/lib/timeout.ts'
import { Problem, unavailable } from '../../shared/platform/problem.ts'
import type { CallHandler } from '../rpc/call.ts'
import { type EnteredSandbox, enter, reachPod, runInside } from '../sandbox/enter.ts'
import type { Command } from './command.ts'
import type { ExecContext } from './context.ts'
import { startCommand } from './start.ts'

export const exec: CallHandler<'exec', ExecContext> = async (args, worker, { signal, ...wire }) => {
  const command = await startCommand(worker, args, wire)
  if (args.mode === 'background') startGrace(command)
  else await waitFor(command, signal)
  return command.result()
}

export const getExec: CallHandler<'getExec', ExecContext> = async (args, worker, { signal }) => {
  const command = worker.commands.get(args)
  if (args.wait) await waitFor(command, signal)
  return command.result()
}

export const runningPids: CallHandler<'runningPids', ExecContext> = async (args, worker) => {
  const commands = worker.commands
    .of(args.sandboxId)
    .filter(({ id }) => worker.commands.find(id, args.accountId))
  return Object.fromEntries(commands.map((command) => [command.id, command.pid]))
}

export const stopExec: CallHandler<'stopExec', ExecContext> = async (args, worker) => {
  const command = worker.commands.get(args)
  await command.signal(args.signal)
  return command.result()
}

/**
 * Waits until the command ends or the client disconnects. After a disconnect, a foreground command keeps
 * running for its grace period.
 * @throws {Problem} `unavailable` if the exit status could not be stored in time
 */
async function waitFor(command: Command, signal: AbortSignal): Promise<void> {
  command.clients.arrive()
  // A client that disconnected, possibly while the command was starting, needs no response.
  const isRecorded = await untilAborted(signal, command.waitForRecordedExit()).catch(() => true)
  command.clients.leave()
  if (!isRecorded) {
    throw unavailable(
      'The command has ended, but its exit status could not be stored because the database is unavailable. Get the ' +
        'command later by its exec_id, or repeat the request if it had an Idempotency-Key.',
      undefined,
      { exec_id: command.facts.id },
    )
  }
}

/** Starts the grace period of a background command immediately, because a client might never attach. */
function startGrace(command: Command): void {
  command.clients.arrive()
  command.clients.leave()
}

/** Delay before a failed sandbox reset is retried, because killed processes take some time to exit. */
const retryMs = 100
/** How long a sandbox reset is retried. After a fork bomb, the node may be too busy to run `true` in time. */
const retryBudgetMs = 15_000

/**
 * Kills all processes in a sandbox, then runs `true` there to check that commands work again. The report of
 * the kill script is not sufficient, because it comes from the sandbox and is not trusted.
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
