/** Runs a command in a terminal. A terminal has a size, and combines stdout and stderr into one stream. */
import { recordPid } from '../../shared/data/exec-writes.ts'
import { podOf, type SandboxRow } from '../../shared/data/sandboxes.ts'
import type { TerminalSize } from '../drivers/driver.ts'
import { reachPod, takeSlot } from '../sandbox/enter.ts'
import type { ShellCommand } from '../shell/script.ts'
import type { CommandExit, CommandProcesses } from '../shell/slot.ts'
import { openTerminal } from '../shell/terminal.ts'
import type { Command } from './command.ts'
import type { ExecContext } from './context.ts'
import type { RequestStdin } from './request-stdin.ts'
import { bodyOf, feed, takeOutput } from './run.ts'

export interface TerminalStart {
  size: TerminalSize
  stdin: RequestStdin | undefined
  /** Throws if the client has disconnected. Called immediately before the command starts. */
  assertAwaited(): Promise<void>
}

/** Resolves when the terminal is open. The returned `ended` resolves when the command has ended. */
export async function runInTerminal(
  worker: ExecContext,
  sandbox: SandboxRow,
  command: Command,
  shellCommand: ShellCommand,
  { size, stdin, assertAwaited }: TerminalStart,
): Promise<{ processes: () => CommandProcesses; ended: Promise<CommandExit> }> {
  const { pod, terminal } = await open(worker, sandbox, shellCommand, { id: command.id, size, assertAwaited })
  const ended = followOutput(worker, command, terminal)
  const processes = { pod, leader: terminal.pid }
  command.begin(
    { ...bodyOf(worker, processes, ended, terminal), resize: (size) => terminal.resize(size) },
    terminal.stdin,
  )
  // No EOF is sent, because a user types into the same stdin later.
  if (stdin) feed(command, stdin, false)
  return { processes: () => processes, ended }
}

/**
 * Opens the terminal. A separate function, so that no closure keeps the shell command and its environment in
 * memory while the command runs.
 */
const open = (
  worker: ExecContext,
  sandbox: SandboxRow,
  shellCommand: ShellCommand,
  { id, size, assertAwaited }: Omit<TerminalStart, 'stdin'> & { id: string },
) =>
  reachPod(worker, sandbox, async (now) => {
    const pod = podOf(now)
    const beforeStart = async (pid: number) => {
      worker.reach('start: the terminal waits, its pid is not recorded')
      await recordPid(worker.db, id, pid)
      await assertAwaited()
    }
    const options = { id, takeSlot: () => takeSlot(worker, now), beforeStart }
    return { pod, terminal: await openTerminal(worker.driver, pod, shellCommand, size, options) }
  })

async function followOutput(
  worker: ExecContext,
  command: Command,
  terminal: Awaited<ReturnType<typeof openTerminal>>,
): Promise<CommandExit> {
  try {
    for await (const chunk of terminal.stdout) await takeOutput(worker, command, 'stdout', chunk as Buffer)
  } catch {
    // The connection broke. `terminal.ended` resolves with the reason.
  }
  return await terminal.ended
}
