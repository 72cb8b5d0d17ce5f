/**
 * A slot is a shell in a pod that runs one command at a time. Opening a slot accounts for most of a command's
 * startup time, so a slot is used again if its command left nothing behind.
 */
import { randomBytes } from 'node:crypto'
import { constants } from 'node:os'
import { Writable } from 'node:stream'
import type { StartError } from '../../shared/contract/exec.ts'
import { withTimeout } from '../../shared/lib/timeout.ts'
import {
  type Driver,
  DriverUnavailable,
  PodExhausted,
  type PodName,
  type Process,
  type StartOptions,
} from '../drivers/driver.ts'
import { endedRuntime, type Resource, usedUpBy } from '../drivers/exhausted.ts'
import { LineReader } from './line-reader.ts'
import {
  messageFor,
  type ShellCommand,
  scriptFor,
  sentinelPrefix,
  shellThatWaits,
  startedLine,
} from './script.ts'
import { readToSentinel, SentinelScanner } from './sentinel.ts'

const exitCodeMs = 100
const cannotFork = 2
/**
 * How long a slot stays open after its command, because closing it costs the node some work that can wait
 * until the client has the result.
 */
const closeAfterMs = 20

export interface CommandIo {
  /** The entire input, or a function that writes the input once the command has started. */
  stdin?: Buffer | ((stdin: Writable) => void) | undefined
  /** Receives output. The command blocks until the returned promise resolves. */
  onStdout(chunk: Buffer): void | Promise<void>
  onStderr(chunk: Buffer): void | Promise<void>
}

/**
 * The command's exit status as reported by the slot's shell, or `lost` if the shell reported none. The exit
 * status of the shell process itself is never used, because the command may have killed the shell.
 */
export type CommandExit =
  /**
   * `isCut`: stderr ended without its sentinel, so some of stderr may be missing. `inRoot`: the command ran
   * in `/`, because the workspace could not be entered. `startError`: why the command never ran.
   */
  | { kind: 'exited'; code: number; isCut?: true; inRoot?: true; startError?: StartError }
  | {
      kind: 'lost'
      why: string
      /** The exhausted resource, if that is why the command did not run. */
      usedUp?: Resource
    }

export interface CommandProcesses {
  pod: PodName
  /** Pid of the slot's shell, or of the command itself in a terminal. */
  leader: number
  /** Pid of the command, which may have moved to a different process group or session than its slot. */
  command?: number | undefined
  /** Whether the leader is a slot's shell, which reports the exit status. */
  isSlot?: boolean
}

/**
 * Starts a process and ignores errors on its streams. A failed stream ends, and the process's `ended`
 * contains the reason.
 */
export async function startQuietly(
  driver: Driver,
  pod: PodName,
  argv: readonly string[],
  options?: StartOptions,
): Promise<Process> {
  const process = await driver.start(pod, argv, options)
  for (const stream of [process.stdin, process.stdout, process.stderr]) stream.on('error', () => {})
  return process
}

/**
 * @throws {PodGone} if the pod is not running
 * @throws {PodExhausted} if the pod has exhausted a resource that the shell needs
 * @throws {DriverUnavailable} if the pod is unreachable or did not respond
 */
export async function openSlot(driver: Driver, pod: PodName): Promise<Slot> {
  const process = await startQuietly(driver, pod, shellThatWaits)
  const lines = new LineReader(process.stdout)
  const first = await withTimeout(driver.livenessTimeouts.shell, lines.next())
  // The pid is validated because it comes from the sandbox.
  if (first !== undefined && /^[1-9]\d{0,9}$/.test(first)) {
    return new Slot(pod, Number(first), process, lines, driver.livenessTimeouts.shell)
  }
  const error = await diagnoseShell(driver, pod, process)
  process.close()
  throw error
}

/**
 * Returns the error for a shell that did not start.
 * @param output the line that the shell printed instead of its pid
 */
export async function diagnoseShell(
  driver: Driver,
  pod: PodName,
  { ended }: Pick<Process, 'ended'>,
  output = '',
): Promise<DriverUnavailable> {
  const end = await withTimeout(exitCodeMs, ended)
  const message = end?.kind === 'lost' ? end.why : output
  const resource =
    usedUpBy(message) ?? (await findUsedUp(driver, pod)) ?? (endedRuntime(message) ? 'processes' : undefined)
  return resource
    ? new PodExhausted(resource, 'the sandbox cannot start a shell')
    : new DriverUnavailable('the shell in the sandbox did not respond')
}

/** Tests whether the pod can start the nested processes that a slot's script needs. */
const probe = ['/bin/sh', '-c', 'if ( ( (:) && :) && :); then echo room; else echo none; fi; read -r _']

/**
 * Finds out which resource of a pod is exhausted. Starts processes from a shell in the pod, because the
 * container runtime ignores the pod's limits when it starts the shell itself.
 * @returns undefined if no resource is exhausted or the pod does not respond
 */
export async function findUsedUp(driver: Driver, pod: PodName): Promise<Resource | undefined> {
  try {
    const process = await startQuietly(driver, pod, probe)
    const errorLine = new LineReader(process.stderr).next()
    const answer = await withTimeout(driver.livenessTimeouts.shell, new LineReader(process.stdout).next())
    const message = answer === 'room' ? undefined : await withTimeout(exitCodeMs, errorLine)
    process.close()
    return usedUpBy(message ?? '') ?? (answer === 'none' ? 'processes' : undefined)
  } catch (error) {
    return error instanceof PodExhausted ? error.resource : undefined
  }
}

export class Slot {
  readonly pod: PodName
  /** Pid of the shell, which leads the command's process group. */
  readonly pid: number
  /** Pid of the command. It comes from the sandbox, so it is not trusted. */
  private commandPid: number | undefined
  readonly closed: Promise<void>
  /**
   * Whether the slot's shell has ended. If it ends before it receives a command, the command can run in
   * another slot.
   */
  isClosed = false
  private readonly process: Process
  private readonly lines: LineReader
  private readonly errorLines: LineReader
  private readonly answerMs: number
  /** Resolves with whether the shell has announced that it can run another command. */
  private next: Promise<boolean> | undefined

  constructor(pod: PodName, pid: number, process: Process, lines: LineReader, answerMs: number) {
    this.pod = pod
    this.pid = pid
    this.process = process
    this.lines = lines
    this.errorLines = new LineReader(process.stderr)
    this.answerMs = answerMs
    this.closed = process.ended.then(() => {
      this.isClosed = true
    })
  }

  close(): void {
    this.process.close()
  }

  get processes(): CommandProcesses {
    return { pod: this.pod, leader: this.pid, command: this.commandPid, isSlot: true }
  }

  /** Waits for work that must finish before the command starts, and closes the slot if the work fails. */
  async orClose<T>(work: Promise<T>): Promise<T> {
    try {
      return await work
    } catch (error) {
      this.close()
      throw error
    }
  }

  /**
   * Runs a command, then closes the slot. If the command had no stdin and reported its exit status, the slot
   * stays open until the caller calls {@link canRunAgain} or {@link close}.
   */
  run(command: ShellCommand, io: CommandIo): Promise<CommandExit> {
    const sentinel = randomBytes(16).toString('hex')
    this.commandPid = undefined
    this.process.stdin.write(messageFor(scriptFor(command, sentinel)))
    const { noStdin = false } = command
    // Passing on `command` would keep a large one in memory while it runs.
    return this.follow(sentinel, io, { noStdin, hasCwd: command.cwd !== undefined })
  }

  /**
   * Waits until the shell can run another command. If it cannot, closes the slot. A command's background
   * process, for example, might write to the output of the next command.
   */
  async canRunAgain(): Promise<boolean> {
    const { next } = this
    this.next = undefined
    const isReady = next !== undefined && (await withTimeout(this.answerMs, next)) === true
    if (!isReady) this.closeSoon()
    return isReady && !this.isClosed
  }

  /** Closes the slot once the client should have the command's result. */
  closeSoon(): void {
    setTimeout(() => this.close(), closeAfterMs)
  }

  private async follow(
    sentinel: string,
    io: CommandIo,
    { noStdin, hasCwd }: { noStdin: boolean; hasCwd: boolean },
  ): Promise<CommandExit> {
    const { process, lines, errorLines } = this
    try {
      const first = await withTimeout(this.answerMs, lines.next())
      // A signal killed the command's process before it could confirm its start.
      if (first?.startsWith(`${sentinelPrefix}${sentinel} `)) {
        return { kind: 'exited', code: Number(first.slice(sentinel.length + 2)) }
      }
      const confirms = first?.startsWith(`${sentinel} `)
      const started = confirms ? startedLine.exec(first!.slice(sentinel.length + 1)) : null
      if (!started) {
        // The command's process confirms its own start. A shell that exits without that confirmation could
        // not fork.
        const end = await withTimeout(exitCodeMs, process.ended)
        const usedUp = end?.kind === 'exited' && end.code === cannotFork && ({ usedUp: 'processes' } as const)
        return { kind: 'lost', why: 'the sandbox did not confirm that the command started', ...usedUp }
      }
      if (started[1]) this.commandPid = Number(started[1])
      if (!noStdin) feed(process.stdin, io.stdin)
      else if (typeof io.stdin === 'function') io.stdin(discard())
      const announced: Promise<boolean>[] = []
      const read = async (from: LineReader, scanner: SentinelScanner, sink: CommandIo['onStdout']) => {
        const line = await readToSentinel(from, scanner, sink)
        if (noStdin && line !== undefined) announced.push(this.readPid(from))
        // Unread output after the sentinel would block the other stream.
        else from.stream.destroy()
        return line
      }
      // No timeout, because output must not be dropped for a slow reader.
      const [status, errorStatus] = await Promise.all([
        read(lines, new SentinelScanner(sentinel, 'status'), io.onStdout),
        read(errorLines, new SentinelScanner(sentinel), io.onStderr),
      ])
      if (status === undefined) {
        const end = await process.ended
        return end.kind === 'lost' ? end : { kind: 'lost', why: shellEnded(end.code) }
      }
      if (announced.length === 2) this.next = Promise.all(announced).then((each) => each.every(Boolean))
      return {
        ...{ kind: 'exited', code: Number(status) },
        ...(errorStatus === undefined && { isCut: true }),
        ...describeStart(started, hasCwd, Number(status)),
      }
    } finally {
      if (this.next === undefined) {
        if (noStdin) this.closeSoon()
        else this.close()
      }
    }
  }

  /** Reads the line with which the shell announces that it can run another command. */
  private async readPid(lines: LineReader): Promise<boolean> {
    const isPid = (await lines.next()) === String(this.pid)
    if (!isPid) lines.stream.destroy()
    return isPid
  }
}

/**
 * Returns the problems that the shell reported before it started the command. A report that the command could
 * not start counts only if the exit code matches it.
 * @param started a match of {@link startedLine}
 */
export function describeStart(
  [, , noDirectory, noProgram]: readonly (string | undefined)[],
  hasCwd: boolean,
  code: number,
): Pick<CommandExit & { kind: 'exited' }, 'inRoot' | 'startError'> {
  if (noDirectory && hasCwd) return code === 126 ? { startError: 'no_such_directory' } : {}
  return {
    ...(noDirectory && { inRoot: true }),
    ...(noProgram && code === 126 && { startError: 'not_executable' }),
    ...(noProgram && code === 127 && { startError: 'not_found' }),
  }
}

const signalNames = new Map(Object.entries(constants.signals).map(([name, value]) => [128 + value, name]))

/**
 * Returns the name of the signal in an exit code, or null. A shell reports 128 + n both for signal n and for
 * exit status 128 + n, so both count as a signal.
 */
export const signalOf = (code: number): string | null => signalNames.get(code) ?? null

const shellEnded = (code: number): string =>
  `the shell that ran the command ended (${signalOf(code) ?? `exit code ${code}`}) before it could report the ` +
  'exit status of the command'

const discard = () => new Writable({ write: (_chunk, _encoding, done) => done() })

function feed(stdin: Writable, input: CommandIo['stdin']) {
  if (typeof input === 'function') return input(stdin)
  if (input !== undefined && input.length > 0) stdin.write(input)
  stdin.end()
}
