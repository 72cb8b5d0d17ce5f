/** Runs a command in a slot or a terminal, and connects it to its output log, stdin and signals. */
import { setTimeout as sleep } from 'node:timers/promises'
import { recordPid } from '../../shared/data/exec-writes.ts'
import { podOf, type SandboxRow } from '../../shared/data/sandboxes.ts'
import { withTimeout } from '../../shared/lib/timeout.ts'
import { TokenBuckets } from '../../shared/lib/token-buckets.ts'
import type { Reservation } from '../../shared/platform/memory-budget.ts'
import type { TerminalSize } from '../drivers/driver.ts'
import { reachPod, takeSlot } from '../sandbox/enter.ts'
import { killGroup, signalGroup } from '../shell/kill.ts'
import type { ShellCommand } from '../shell/script.ts'
import type { CommandExit, CommandIo, CommandProcesses, Slot } from '../shell/slot.ts'
import { openTerminal } from '../shell/terminal.ts'
import type { Body, Command } from './command.ts'
import type { ExecContext } from './context.ts'

/**
 * Stdin that was sent with a request. It counts toward the memory budget, because the command may read it
 * late or not at all.
 */
export class RequestStdin {
  private readonly reservation: Reservation
  private bytes: Buffer | undefined

  /** @param held the request's reservation; the memory for stdin is moved from it to a new reservation */
  constructor(held: Reservation, bytes: Buffer) {
    this.bytes = bytes
    this.reservation = held.move('stdin', bytes.length)
  }

  /** Returns the bytes on the first call, then undefined. They stay reserved until {@link free}. */
  take(): Buffer | undefined {
    const { bytes } = this
    this.bytes = undefined
    return bytes
  }

  free(): void {
    this.bytes = undefined
    this.reservation.free()
  }
}

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
  const io: CommandIo = {
    stdin(writable) {
      began.resolve()
      command.begin(bodyOf(worker, slot.processes, ended, slot), writable)
      // A background command without stdin in its request may receive it from later requests.
      if (stdin === undefined && background) return
      feed(command, stdin, !background)
    },
    onStdout: (chunk) => takeOutput(worker, command, 'stdout', chunk),
    onStderr: (chunk) => takeOutput(worker, command, 'stderr', chunk),
  }
  const ended: Promise<CommandExit> = slot.run(shellCommand, io)
  return { processes: () => slot.processes, began: began.promise, ended }
}

/**
 * Writes a request's stdin to its command. Frees the memory once the stdin has been written or the command
 * has ended.
 */
function feed(command: Command, stdin: RequestStdin | undefined, eof: boolean): void {
  const free = () => stdin?.free()
  command.stdin.take([stdin?.take() ?? Buffer.alloc(0)], 0, eof).then(free, free)
  void command.ended.then(free)
}

const mebibyte = 1024 * 1024
/** Output rate limit per account in bytes per second, so that one account cannot use up the worker's CPU. */
const outputRate = new TokenBuckets({ perSecond: 64 * mebibyte, burst: 4 * mebibyte })
/** Bytes added to the size of each chunk in the rate limit, because even a small chunk costs CPU time. */
const chunkCost = 16 * 1024
/** Additional cost of each output byte per reader, for encoding, sending, and forwarding by the API. */
const readerCost = 3

async function takeOutput(
  worker: ExecContext,
  command: Command,
  stream: 'stdout' | 'stderr',
  chunk: Buffer,
): Promise<void> {
  const taken = command.take(stream, chunk)
  worker.commands.trim(command.facts.sandboxId)
  await taken
  const cost = chunkCost + chunk.length * (1 + readerCost * command.log.readerCount)
  const waitMs = outputRate.spend(command.facts.accountId, cost)
  if (waitMs > 0) await sleep(waitMs)
}

/** Maximum time for a killed command to report its exit status and remaining output. */
const killedMs = 2_000

function bodyOf(
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

interface TerminalStart {
  size: TerminalSize
  stdin: RequestStdin | undefined
  /** Called immediately before the command starts. Throws if the client has disconnected. */
  assertAwaited(): Promise<void>
}

/**
 * Runs a command in a terminal. Resolves when the terminal is open; `ended` resolves when the command has
 * ended.
 */
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

/** Opens a terminal. This is a separate function, so that no closure keeps `shellCommand` in memory. */
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
