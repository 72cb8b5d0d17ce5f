/**
 * The driver's end of a process in a sandbox. Everything that arrives is untrusted, because the tenant may replace the
 * agent: frames are bounded in size and number, and one that is not expected ends the connection.
 */
import { closeSync, openSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { type Duplex, type Readable, Writable } from 'node:stream'
import { withTimeout } from '../../../shared/lib/timeout.ts'
import {
  DriverUnavailable,
  PodExhausted,
  PortRefused,
  type Process,
  type ProcessEnd,
  type StartOptions,
  type TerminalSize,
} from '../driver.ts'
import { duplexOf } from '../duplex.ts'
import { usedUpBy } from '../exhausted.ts'
import { outputsOf, type ProcessOutput } from '../output.ts'
import { Frame, FrameReader, mostPayloadBytes, sendFrame } from './frames.mjs'

const chunkBytes = 64 * 1024
const frameLimits = {
  /** Bytes of an agent's own messages: a status, or why a process did not start. */
  maxMessageBytes: 4 * 1024,
  /** Frames of one connection that are read before other work gets its turn: 0.2 ms of the smallest. */
  maxFrames: 512,
}
/** Linux's O_PATH, which Node does not name. */
const O_PATH = 0o10000000

/** The agent was not there or did not answer. Nothing was started. */
export class NoAnswer extends Error {
  override name = 'NoAnswer'
}

/** How answers of an agent begin that cannot make a terminal, or finds nobody at a port. */
const noTerminal = 'no terminal: '
const nobodyListens = 'nobody listens'

/**
 * Resolves when the process runs.
 * @throws {NoAnswer} nothing was started; try again
 * @throws {PodExhausted} the sandbox has no room for the process
 * @throws {DriverUnavailable} there are no terminals
 * @throws {Error} the process cannot be started, or whether it was is not known
 */
export async function startProcess(
  path: string,
  argv: readonly string[],
  ms: number,
  { tty }: StartOptions = {},
): Promise<Process> {
  return await ask(path, tty ? { argv, tty } : argv, ms, tty !== undefined)
}

/**
 * Resolves when the connection is there.
 * @throws {PortRefused} nobody listens
 * @throws {NoAnswer} try again
 */
export async function openPort(path: string, port: number, ms: number): Promise<Duplex> {
  return duplexOf(await ask(path, { port }, ms, false), (why) => new Error(why))
}

async function ask(path: string, what: unknown, ms: number, hasTerminal: boolean): Promise<AgentProcess> {
  const words = Buffer.from(JSON.stringify(what))
  if (words.length > mostPayloadBytes) throw new Error('the argv is too long')
  const socket = openSocket(path)
  const process = new AgentProcess(socket, words, hasTerminal)
  try {
    await withTimeout(ms, process.opened, () => {
      throw new Error(`the agent did not answer within ${ms} ms`)
    })
    return process
  } catch (error) {
    socket.destroy()
    throw error
  }
}

class AgentProcess implements Process {
  readonly opened: Promise<void>
  readonly stdin: Writable
  readonly stdout: Readable
  readonly stderr: Readable
  readonly ended: Promise<ProcessEnd>
  readonly resize?: (size: TerminalSize) => Promise<void>
  private readonly socket: Socket
  /** What the agent is to start. */
  private readonly request: Buffer
  private readonly outputs: Record<'stdout' | 'stderr', ProcessOutput>
  private readonly opening = Promise.withResolvers<void>()
  private readonly ending = Promise.withResolvers<ProcessEnd>()
  private why = 'the sandbox closed the connection'
  /** The frames that are expected follow from it. */
  private stage: 'connecting' | 'asked' | 'running' | 'finished' = 'connecting'

  constructor(socket: Socket, request: Buffer, hasTerminal: boolean) {
    this.socket = socket
    this.request = request
    this.opened = this.opening.promise
    this.ended = this.ending.promise
    const frames = readFrames(socket, {
      onFrame: (type, payload) => this.take(type, payload),
      onInvalid: () => this.fail('what came from the sandbox made no sense'),
      onClose: () => this.finish({ kind: 'lost', why: this.why }),
    })
    const output = outputsOf(frames, chunkBytes)
    this.outputs = { stdout: output(), stderr: output() }
    this.stdin = inputOf(socket)
    this.stdout = this.outputs.stdout.stream
    this.stderr = this.outputs.stderr.stream
    if (hasTerminal) {
      this.outputs.stderr.end()
      this.resize = (size) =>
        new Promise((resolve) => {
          sendFrame(socket, Frame.resize, Buffer.from(JSON.stringify(size)), () => resolve())
        })
    }
    socket.on('error', (error) => this.fail(error.message))
  }

  close = (): void => this.fail('the connection was closed')

  private take(type: number, payload: Buffer) {
    if (this.stage === 'finished') return
    if (this.stage === 'connecting' && type === Frame.hello) return this.send()
    if (this.stage === 'asked' && type === Frame.started) {
      this.stage = 'running'
      return this.opening.resolve()
    }
    // Also of one that runs: the program of its terminal may end before it.
    if (this.stage !== 'connecting' && type === Frame.failed) {
      return this.fail(payload.subarray(0, 300).toString())
    }
    if (this.stage !== 'running') throw new Error('unexpected')
    if (type === Frame.stdout) return this.outputs.stdout.push(payload)
    if (type === Frame.stderr) return this.outputs[this.resize ? 'stdout' : 'stderr'].push(payload)
    if (type !== Frame.exit || payload.length !== 4) throw new Error('unexpected')
    this.finish({ kind: 'exited', code: payload.readUInt32BE() })
  }

  /** Sent only once the agent has answered: an agent that is killed may also accept a connection. */
  private send(): void {
    this.stage = 'asked'
    sendFrame(this.socket, Frame.start, this.request)
  }

  private fail = (why: string): void => {
    this.why = why
    // A paused socket would report its close only after its waiting bytes were read.
    this.socket.destroy()
    this.finish({ kind: 'lost', why })
  }

  private finish(end: ProcessEnd): void {
    if (this.stage === 'finished') return
    this.opening.reject(this.stage === 'connecting' ? new NoAnswer(this.why) : refusal(this.why))
    this.stage = 'finished'
    for (const output of Object.values(this.outputs)) output.end()
    this.stdin.destroy()
    this.socket.destroy()
    this.ending.resolve(end)
  }
}

function refusal(why: string): Error {
  if (why.startsWith(noTerminal)) return new DriverUnavailable(why)
  if (why.startsWith(nobodyListens)) return new PortRefused(why)
  const resource = usedUpBy(why)
  return resource ? new PodExhausted(resource, why) : new Error(why)
}

function inputOf(socket: Socket): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      for (let start = 0; start < chunk.length; start += chunkBytes) {
        const isLast = start + chunkBytes >= chunk.length
        // An ended process reads no more, which is not the writer's fault.
        const sent = isLast ? () => done() : undefined
        sendFrame(socket, Frame.stdin, chunk.subarray(start, start + chunkBytes), sent)
      }
      if (chunk.length === 0) done()
    },
    final(done) {
      sendFrame(socket, Frame.stdinEnd, undefined, () => done())
    },
  })
}

/** Through a file descriptor: a socket's path may have 107 bytes, however long the folder's is. */
function openSocket(path: string): Socket {
  let fd: number
  try {
    fd = openSync(path, O_PATH)
  } catch {
    throw new NoAnswer('the agent is not there')
  }
  try {
    // Connects before it returns.
    return connect(`/proc/self/fd/${fd}`)
  } finally {
    closeSync(fd)
  }
}

interface FrameHandlers {
  /** Throws for a frame that is not expected. */
  onFrame(type: number, payload: Buffer): void
  /** The socket was destroyed because of a frame. */
  onInvalid(): void
  /** The socket is closed, and all that it received was read. */
  onClose(): void
}

/**
 * Reads frames, a bounded number in each turn of the event loop.
 * @returns to be paused and resumed in place of the socket
 */
function readFrames(
  socket: Socket,
  { onFrame, onInvalid, onClose }: FrameHandlers,
): { pause(): void; resume(): void } {
  const reader = new FrameReader(onFrame, frameLimits)
  let isWanted = true
  let hasRest = false
  let isClosed = false
  const read = (chunk: Buffer): void => {
    try {
      const bytes = reader.read(chunk)
      hasRest = bytes < chunk.length
      if (hasRest) setImmediate(read, chunk.subarray(bytes))
    } catch {
      hasRest = false
      socket.destroy()
      onInvalid()
    }
    if (hasRest) socket.pause()
    else if (isClosed) onClose()
    else if (isWanted) socket.resume()
  }
  socket.on('data', read)
  // A paused socket closes too, once it has handed over its last bytes.
  socket.on('close', () => {
    isClosed = true
    if (!hasRest) onClose()
  })
  return {
    pause() {
      isWanted = false
      socket.pause()
    },
    resume() {
      isWanted = true
      if (!hasRest) socket.resume()
    },
  }
}
