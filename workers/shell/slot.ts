/**
 * A slot: a shell that waits in a pod for one command. Opening one is the slow half of running a
 * command and needs nothing of it, so it may be done ahead of time; running is one write.
 */
import { randomBytes } from 'node:crypto'
import { type Readable, Writable } from 'node:stream'
import { within } from '../../shared/platform/patience.ts'
import { type Driver, DriverUnavailable, type PodName, type Process } from '../drivers/driver.ts'
import { MarkFinder } from './mark.ts'
import { messageFor, type ShellCommand, scriptFor, shellThatWaits } from './script.ts'

/** A shell that has not answered by now never will: half-open connections swallow writes. */
export const answerMs = 5_000
/** Taking a slot down is work for the node, which can wait until whoever asked has the answer. */
const closeAfterMs = 20

export interface Slot {
  /** Leads the process group of all that the command starts and does not move elsewhere. */
  pid: number
  /** Runs one command; a slot serves no second one. */
  run(command: ShellCommand, io: CommandIo): Promise<CommandEnd>
  /** Resolves when the shell or the connection to it has ended. */
  closed: Promise<void>
  /** Whether it has. A command that is given to it after that has not run, and can be given to another. */
  readonly isClosed: boolean
  close(): void
}

export interface CommandIo {
  /** All of it, or what feeds it once the command has started. */
  stdin?: Buffer | ((stdin: Writable) => void) | undefined
  /** Takes output as it comes; the command waits until it resolves. */
  onStdout(chunk: Buffer): void | Promise<void>
  onStderr(chunk: Buffer): void | Promise<void>
}

/** Never a guess: either the status that the shell reported, or that it is not known. */
export type CommandEnd =
  /**
   * `withShell`: a signal ended the shell too, and the runtime reported that; a pod's death looks like it.
   * `isCut`: the end of its stderr did not come, so how much it printed there is not known.
   */
  { kind: 'exited'; code: number; withShell?: true; isCut?: true } | { kind: 'lost'; why: string }

/**
 * @throws {PodGone} the pod does not run
 * @throws {DriverUnavailable} it could not be reached, or did not answer
 */
export async function openSlot(driver: Driver, pod: PodName): Promise<Slot> {
  const process = await driver.start(pod, shellThatWaits)
  // Errors of a stream show as its end; the ending tells why.
  for (const stream of [process.stdin, process.stdout, process.stderr]) stream.on('error', () => {})
  const lines = new LineReader(process.stdout)
  const first = await within(answerMs, lines.next())
  // The pid comes from inside the sandbox: believed only if it looks like one.
  if (first === undefined || !/^[1-9]\d{0,9}$/.test(first)) {
    process.close()
    throw new DriverUnavailable('the shell in the sandbox did not answer')
  }
  let isClosed = false
  const closed = process.ended.then(() => {
    isClosed = true
  })
  return {
    pid: Number(first),
    run: (command, io) => runIn(process, lines, command, io),
    closed,
    get isClosed() {
      return isClosed
    },
    close: () => process.close(),
  }
}

async function runIn(
  process: Process,
  lines: LineReader,
  command: ShellCommand,
  io: CommandIo,
): Promise<CommandEnd> {
  const mark = randomBytes(16).toString('hex')
  process.stdin.write(messageFor(scriptFor(command, mark)))
  try {
    if ((await within(answerMs, lines.next())) !== mark) {
      return { kind: 'lost', why: 'the sandbox did not confirm that the command started' }
    }
    if (!command.noStdin) feed(process.stdin, io.stdin)
    else if (typeof io.stdin === 'function') io.stdin(nowhere())
    // However long it takes: whoever reads them may be slow, and no byte is dropped for that.
    const [status, isWhole] = await Promise.all([
      readToMark(lines.rest(), process.stdout, new MarkFinder(mark, 'status'), io.onStdout),
      readToMark(Buffer.alloc(0), process.stderr, new MarkFinder(mark), io.onStderr),
    ])
    if (status !== undefined) {
      return { kind: 'exited', code: Number(status), ...(isWhole === undefined && { isCut: true }) }
    }
    // A signal ended the shell itself: what the runtime says of it is all there is to know. Without
    // one it would have printed its mark, so some of its output did not come.
    const end = await process.ended
    if (end.kind === 'lost') return end
    if (end.code > 128) return { ...end, withShell: true }
    return { kind: 'lost', why: 'its output ended before it did' }
  } finally {
    if (command.noStdin) setTimeout(() => process.close(), closeAfterMs)
    else process.close()
  }
}

const nowhere = () => new Writable({ write: (_chunk, _encoding, done) => done() })

function feed(stdin: Writable, input: CommandIo['stdin']) {
  if (typeof input === 'function') return input(stdin)
  if (input !== undefined && input.length > 0) stdin.write(input)
  stdin.end()
}

/** @returns what the mark's line says, or undefined when the stream ended without one */
async function readToMark(
  ahead: Buffer,
  stream: Readable,
  finder: MarkFinder,
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
    // Cut off: the ending tells why.
  } finally {
    // Whatever comes behind the mark must not make the other stream wait.
    stream.destroy()
  }
  const rest = finder.rest()
  if (rest.length > 0) await sink(rest)
  return undefined
}

/** Reads single lines off a stream and leaves what follows them. */
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
      // No line of ours is longer; whatever this is, it is not our shell.
      if (this.ahead.length > 256) return undefined
      const chunk = this.stream.read() as Buffer | null
      if (chunk !== null) this.ahead = Buffer.concat([this.ahead, chunk])
      else if (this.stream.readableEnded || this.stream.destroyed) return undefined
      else await readable(this.stream)
    }
  }

  rest(): Buffer {
    return this.ahead
  }
}

const readable = (stream: Readable) =>
  new Promise<void>((resolve) => {
    const done = () => {
      for (const event of ['readable', 'end', 'close']) stream.off(event, done)
      resolve()
    }
    for (const event of ['readable', 'end', 'close']) stream.on(event, done)
  })
