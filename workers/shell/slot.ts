/**
 * A slot: a shell that waits in a pod for one command. Opening it is the slow half of running a command and needs
 * nothing of the command, so it may be done ahead of time. Running the command is one write.
 */
import { randomBytes } from 'node:crypto'
import { type Readable, Writable } from 'node:stream'
import { withTimeout } from '../../shared/lib/timeout.ts'
import { untilAny } from '../../shared/lib/until-any.ts'
import {
  type Driver,
  DriverUnavailable,
  PodExhausted,
  type PodName,
  type Process,
  type StartOptions,
} from '../drivers/driver.ts'
import { endedRuntime, type Resource, usedUpBy } from '../drivers/exhausted.ts'
import { signalOf } from './exit-code.ts'
import { SentinelScanner } from './sentinel.ts'
import { inRoot, sentinelPrefix, messageFor, type ShellCommand, scriptFor, shellThatWaits } from './script.ts'

/** Milliseconds until the end of a process is known whose output has ended. */
const endMs = 100
/** The status of a shell that could not start a process. */
const cannotFork = 2
/** Milliseconds until the slot of an ended command is closed, which is work for the node: the answer goes first. */
const closeAfterMs = 20

export interface CommandIo {
  /** All of the input, or a function that writes it once the command has started. */
  stdin?: Buffer | ((stdin: Writable) => void) | undefined
  /** Takes output as it comes; the command waits until it resolves. */
  onStdout(chunk: Buffer): void | Promise<void>
  onStderr(chunk: Buffer): void | Promise<void>
}

/**
 * Never a guess: either the exit status that the shell reported, or `lost`. A command may end or stop that shell, which
 * is its parent. How the shell itself ended says nothing about the command.
 */
export type CommandExit =
  /**
   * `isCut`: the end of stderr did not come, so how much was printed there is not known. `inRoot`: it ran in `/`, because
   * the workspace could not be entered.
   */
  | { kind: 'exited'; code: number; isCut?: true; inRoot?: true }
  | {
      kind: 'lost'
      why: string
      /** The sandbox has used it up, so nothing has run. */
      usedUp?: Resource
    }

export interface CommandProcesses {
  pod: PodName
  /** Leads the process group: the shell of the slot, or the command itself on a terminal. */
  leader: number
  /** Of the command, once it runs in a slot. It may have moved to a process group or a session of its own. */
  command?: number | undefined
  /** The leader is the shell of the slot, which reports the exit status of the command. */
  isSlot?: boolean
}

/** Starts a process. An error of one of its streams shows as the stream's end, and `ended` tells why. */
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
 * @throws {PodGone} the pod does not run
 * @throws {PodExhausted} it has no room for the shell
 * @throws {DriverUnavailable} it could not be reached, or did not answer
 */
export async function openSlot(driver: Driver, pod: PodName): Promise<Slot> {
  const process = await startQuietly(driver, pod, shellThatWaits)
  const lines = new LineReader(process.stdout)
  const first = await withTimeout(driver.livenessTimeouts.shell, lines.next())
  // The pid comes from inside the sandbox, so it is checked.
  if (first !== undefined && /^[1-9]\d{0,9}$/.test(first)) {
    return new Slot(pod, Number(first), process, lines, driver.livenessTimeouts.shell)
  }
  const why = await whySilent(driver, pod, process)
  process.close()
  throw why
}

/**
 * Why a shell that was started did not tell its pid.
 * @param said what it told instead
 */
export async function whySilent(
  driver: Driver,
  pod: PodName,
  { ended }: Pick<Process, 'ended'>,
  said = '',
): Promise<DriverUnavailable> {
  const end = await withTimeout(endMs, ended)
  const words = end?.kind === 'lost' ? end.why : said
  const resource =
    usedUpBy(words) ?? (await findUsedUp(driver, pod)) ?? (endedRuntime(words) ? 'processes' : undefined)
  return resource
    ? new PodExhausted(resource, 'the sandbox has no room for a shell')
    : new DriverUnavailable('the shell in the sandbox did not answer')
}

/** As many processes as a command may need before it says anything. */
const probe = ['/bin/sh', '-c', 'if ( ( (:) && :) && :); then echo room; else echo none; fi; read -r _']

/**
 * Asks a shell in the pod to start processes. Runtimes put the shell itself into the pod whatever its limits say.
 * @returns what the pod has used up; undefined when it has room, or does not answer
 */
export async function findUsedUp(driver: Driver, pod: PodName): Promise<Resource | undefined> {
  try {
    const process = await startQuietly(driver, pod, probe)
    const words = new LineReader(process.stderr).next()
    const answer = await withTimeout(driver.livenessTimeouts.shell, new LineReader(process.stdout).next())
    const said = answer === 'room' ? undefined : await withTimeout(endMs, words)
    process.close()
    return usedUpBy(said ?? '') ?? (answer === 'none' ? 'processes' : undefined)
  } catch (error) {
    return error instanceof PodExhausted ? error.resource : undefined
  }
}

export class Slot {
  readonly pod: PodName
  /** The leader of the command's process group. The command may move its processes to other groups. */
  readonly pid: number
  /** Of the command itself, once it runs. It comes from inside the sandbox. */
  private commandPid: number | undefined
  /** Resolves when the shell or the connection to it has ended. */
  readonly closed: Promise<void>
  /** Whether it has. A command that was given to it after that has not run, and can be given to another slot. */
  isClosed = false
  private readonly process: Process
  private readonly lines: LineReader
  /** Milliseconds in which the shell answers. */
  private readonly answerMs: number

  constructor(pod: PodName, pid: number, process: Process, lines: LineReader, answerMs: number) {
    this.pod = pod
    this.pid = pid
    this.process = process
    this.lines = lines
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

  /** Does work before its command. It is closed when that fails. */
  async orClose<T>(work: Promise<T>): Promise<T> {
    try {
      return await work
    } catch (error) {
      this.close()
      throw error
    }
  }

  /** Runs one command. A slot serves no second one. */
  run(command: ShellCommand, io: CommandIo): Promise<CommandExit> {
    const mark = randomBytes(16).toString('hex')
    this.process.stdin.write(messageFor(scriptFor(command, mark)))
    // The command itself may be large, and is not kept while it runs.
    return this.follow(mark, command.noStdin, io)
  }

  private async follow(mark: string, noStdin: boolean | undefined, io: CommandIo): Promise<CommandExit> {
    const { process, lines } = this
    try {
      const first = await withTimeout(this.answerMs, lines.next())
      // A signal ended that process before it said anything.
      if (first?.startsWith(`${sentinelPrefix}${mark} `)) {
        return { kind: 'exited', code: Number(first.slice(mark.length + 2)) }
      }
      const started = first?.startsWith(mark) ? startedLine.exec(first.slice(mark.length)) : null
      if (!started) {
        // The command's own process confirms it, so a shell that ended before that could not start one.
        const end = await withTimeout(endMs, process.ended)
        const usedUp = end?.kind === 'exited' && end.code === cannotFork && ({ usedUp: 'processes' } as const)
        return { kind: 'lost', why: 'the sandbox did not confirm that the command started', ...usedUp }
      }
      if (started[1]) this.commandPid = Number(started[1])
      if (!noStdin) feed(process.stdin, io.stdin)
      else if (typeof io.stdin === 'function') io.stdin(nowhere())
      // No time-out: readers may be slow, and no byte is dropped for that.
      const [status, isWhole] = await Promise.all([
        readToSentinel(lines.rest(), process.stdout, new SentinelScanner(mark, 'status'), io.onStdout),
        readToSentinel(Buffer.alloc(0), process.stderr, new SentinelScanner(mark), io.onStderr),
      ])
      if (status !== undefined) {
        return {
          ...{ kind: 'exited', code: Number(status) },
          ...(isWhole === undefined && { isCut: true }),
          ...(started[2] === inRoot && { inRoot: true }),
        }
      }
      const end = await process.ended
      return end.kind === 'lost' ? end : { kind: 'lost', why: shellEnded(end.code) }
    } finally {
      if (noStdin) setTimeout(() => process.close(), closeAfterMs)
      else process.close()
    }
  }
}

/** What follows the mark on the line that confirms the start: the pid of the command, where /proc told it. */
const startedLine = /^ ([1-9]\d{0,9})?( \/)?$/

const shellEnded = (code: number): string =>
  `the shell that ran the command ended (${signalOf(code) ?? `exit code ${code}`}) before it could report the ` +
  'exit status of the command'

const nowhere = () => new Writable({ write: (_chunk, _encoding, done) => done() })

function feed(stdin: Writable, input: CommandIo['stdin']) {
  if (typeof input === 'function') return input(stdin)
  if (input !== undefined && input.length > 0) stdin.write(input)
  stdin.end()
}

/** @returns the rest of the mark's line, or undefined when the stream ended without a mark */
async function readToSentinel(
  ahead: Buffer,
  stream: Readable,
  finder: SentinelScanner,
  sink: CommandIo['onStdout'],
): Promise<string | undefined> {
  const take = async (chunk: Buffer) => {
    const { output, line } = finder.push(chunk)
    if (output.length > 0) await sink(output)
    return line
  }
  try {
    const line = await take(ahead)
    if (line !== undefined) return line
    for await (const chunk of stream) {
      const line = await take(chunk as Buffer)
      if (line !== undefined) return line
    }
  } catch {
    // The connection broke: `ended` tells why.
  } finally {
    // What comes after the mark must not make the other stream wait.
    stream.destroy()
  }
  const rest = finder.rest()
  if (rest.length > 0) await sink(rest)
  return undefined
}

/** Reads single lines from a stream, and leaves what follows them. */
export class LineReader {
  private readonly stream: Readable
  private ahead: Buffer = Buffer.alloc(0)

  constructor(stream: Readable) {
    this.stream = stream
  }

  /** @returns the next line, or undefined when the stream ended before it did */
  async next(): Promise<string | undefined> {
    for (;;) {
      const end = this.ahead.indexOf('\n')
      if (end !== -1) {
        const line = this.ahead.toString('latin1', 0, end)
        this.ahead = this.ahead.subarray(end + 1)
        return line
      }
      // No line of our shell is longer: this is something else.
      if (this.ahead.length > 256) return undefined
      const chunk = this.stream.read() as Buffer | null
      if (chunk !== null) this.ahead = Buffer.concat([this.ahead, chunk])
      else if (this.stream.readableEnded || this.stream.destroyed) return undefined
      else await untilAny(this.stream, ['readable', 'end', 'close'])
    }
  }

  rest(): Buffer {
    return this.ahead
  }
}
