/** Runs a command in a slot, and connects its output log, stdin and signals. */
import { setTimeout as sleep } from 'node:timers/promises'
import { withTimeout } from '../../shared/lib/timeout.ts'
import { signalGroup } from '../shell/kill.ts'
import { killGroup } from '../shell/run.ts'
import type { ShellCommand } from '../shell/script.ts'
import type { CommandExit, CommandProcesses, Slot } from '../shell/slot.ts'
import type { Body, Command } from './command.ts'
import type { ExecContext } from './context.ts'
import type { RequestStdin } from './request-stdin.ts'

export interface Input {
  stdin: RequestStdin | undefined
  background?: boolean | undefined
}

export function runInSlot(
  worker: ExecContext,
  command: Command,
  slot: Slot,
  shellCommand: ShellCommand,
  { stdin, background = false }: Input,
): { processes: () => CommandProcesses; began: Promise<void>; ended: Promise<CommandExit> } {
  const began = Promise.withResolvers<void>()
  const ended: Promise<CommandExit> = slot.run(shellCommand, {
    stdin(writable) {
      began.resolve()
      command.begin(bodyOf(worker, slot.processes, ended, slot), writable)
      // A background command without stdin in its request may receive it from later requests.
      if (stdin === undefined && background) return
      feed(command, stdin, !background)
    },
    onStdout: (chunk) => takeOutput(worker, command, 'stdout', chunk),
    onStderr: (chunk) => takeOutput(worker, command, 'stderr', chunk),
  })
  return { processes: () => slot.processes, began: began.promise, ended }
}

/**
 * Passes the request's stdin to the command. Its memory is freed once the command has read it or has ended.
 */
export function feed(command: Command, stdin: RequestStdin | undefined, eof: boolean): void {
  const free = () => stdin?.free()
  // A command may end before it has read all of its stdin.
  command.stdin.takeBytes(stdin?.take() ?? Buffer.alloc(0), 0, eof).then(free, free)
  void command.ended.then(free)
}

export async function takeOutput(
  worker: ExecContext,
  command: Command,
  stream: 'stdout' | 'stderr',
  chunk: Buffer,
): Promise<void> {
  const taken = command.take(stream, chunk)
  worker.commands.trim(command.facts.sandboxId)
  await taken
  const { accountId } = command.facts
  const waitMs = worker.outputRate.spend(accountId, chunk.length, command.log.readerCount)
  if (waitMs > 0) await sleep(waitMs)
}

/** Maximum time for a killed command to report its exit status and remaining output. */
const killedMs = 2_000

export function bodyOf(
  worker: ExecContext,
  processes: CommandProcesses,
  ended: Promise<unknown>,
  closeable: { close(): void },
): Body {
  const { leader, command, isSlot } = processes
  return {
    pid: isSlot ? command : leader,
    async signal(name) {
      const isDone = await signalGroup(worker.driver, processes, name)
      if (!isDone || name !== 'KILL') return
      // Kubernetes may not report the end of a process with much unread stdin (drivers/kubernetes/exec.ts).
      void withTimeout(killedMs, ended).then(() => closeable.close())
    },
    async end() {
      await killGroup(worker.driver, processes, ended)
      closeable.close()
    },
  }
}
