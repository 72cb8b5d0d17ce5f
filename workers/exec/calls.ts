import { untilAborted } from '../../shared/lib/timeout.ts'
import { unavailable } from '../../shared/platform/problem.ts'
import type { CallHandler } from '../rpc/call.ts'
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
 * Waits until the command has ended or the client has disconnected. A disconnect starts the grace period of a
 * foreground command.
 * @throws {Problem} `unavailable` when the exit status could not be stored in time
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

/** Starts the grace period of a background command immediately, because a client might never attach to it. */
function startGrace(command: Command): void {
  command.clients.arrive()
  command.clients.leave()
}
