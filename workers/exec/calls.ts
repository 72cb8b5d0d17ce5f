/** The calls about commands that answer JSON. */
import { untilAborted } from '../../shared/lib/timeout.ts'
import { unavailable } from '../../shared/platform/problem.ts'
import type { CallHandler } from '../rpc/call.ts'
import type { Command } from './command.ts'
import type { ExecContext } from './context.ts'
import { startCommand } from './start.ts'

export const exec: CallHandler<'exec', ExecContext> = async (args, worker, { signal, ...wire }) => {
  const command = await startCommand(worker, args, wire)
  if (args.mode === 'background') lookIn(command)
  else await waitFor(command, signal)
  return command.result()
}

export const getExec: CallHandler<'getExec', ExecContext> = async (args, worker, { signal }) => {
  const command = worker.commands.get(args)
  if (args.wait) await waitFor(command, signal)
  return command.result()
}

export const stopExec: CallHandler<'stopExec', ExecContext> = async (args, worker) => {
  const command = worker.commands.get(args)
  await command.signal(args.signal)
  return command.result()
}

/**
 * Resolves when the command has ended, or when no client waits any more; a foreground command is then ended.
 * @throws {Problem} `unavailable` when the exit status could not be written
 */
async function waitFor(command: Command, signal: AbortSignal): Promise<void> {
  command.clients.arrive()
  // A client that has left, maybe while the command was being started, needs no answer.
  const isKnown = await untilAborted(signal, command.mayBeTold()).catch(() => true)
  command.clients.leave()
  if (!isKnown) {
    throw unavailable(
      'The command has ended, but the database that keeps its exit status is unavailable. Get the command later by ' +
        'exec_id, or repeat the request if it had an Idempotency-Key.',
      undefined,
      { exec_id: command.facts.id },
    )
  }
}

/** Starts the command's grace: the client that asked for it may never follow it. */
function lookIn(command: Command): void {
  command.clients.arrive()
  command.clients.leave()
}
