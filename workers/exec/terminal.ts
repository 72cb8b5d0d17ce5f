/** A command with a terminal: one stream of output, and a size. */

import type { SandboxRow } from '../../shared/data/sandboxes.ts'
import type { WorkerContext } from '../context.ts'
import { openSlotIn, podOf, reaching } from '../sandbox/enter.ts'
import type { ShellCommand } from '../shell/script.ts'
import type { CommandEnd } from '../shell/slot.ts'
import { openTerminal } from '../shell/terminal.ts'
import type { Command } from './command.ts'
import { recordPid } from './rows.ts'
import { bodyOf, takeOutput } from './run.ts'

/**
 * Resolves when the terminal is open. `ended` of the result settles when the command has ended.
 * @param mustBeAwaited throws when nobody waits any more
 */
export async function runInTerminal(
  worker: WorkerContext,
  sandbox: SandboxRow,
  command: Command,
  shellCommand: ShellCommand,
  mustBeAwaited: () => Promise<void>,
): Promise<{ pid: number; ended: Promise<CommandEnd> }> {
  const { rows = 24, columns = 80, stdin } = command.facts.request
  const size = { rows, columns }
  const ways = { takeSlot: () => openSlotIn(worker, sandbox), beforeStart: mustBeAwaited }
  const terminal = await reaching(worker, sandbox, () =>
    openTerminal(worker.driver, podOf(sandbox), shellCommand, size, ways),
  )
  await recordPid(worker.db, command.id, terminal.pid).catch((error) => {
    // The command runs already, and nobody could find it again. Its client is told that it did not start.
    void bodyOf(worker, sandbox, terminal.pid, terminal.ended, terminal).end()
    throw error
  })
  const ended = followOutput(worker, command, terminal)
  command.begin(
    { ...bodyOf(worker, sandbox, terminal.pid, ended, terminal), resize: (size) => terminal.resize(size) },
    terminal.stdin,
  )
  // Written as if it were typed. A command may end before it has read all of it.
  if (stdin) command.stdin.takeBytes(Buffer.from(stdin), 0, false).catch(() => {})
  return { pid: terminal.pid, ended }
}

async function followOutput(
  worker: WorkerContext,
  command: Command,
  terminal: Awaited<ReturnType<typeof openTerminal>>,
): Promise<CommandEnd> {
  try {
    for await (const chunk of terminal.stdout) await takeOutput(worker, command, 'stdout', chunk as Buffer)
  } catch {
    // The connection broke: the end tells why.
  }
  return await terminal.ended
}
