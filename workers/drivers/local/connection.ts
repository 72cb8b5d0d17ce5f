/**
 * The driver's end of a process in a sandbox. Whatever comes from there is untrusted: frames are bounded, and an
 * invalid one ends the connection.
 */
import { closeSync, constants, fstatSync, openSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { type Duplex, type Readable, Writable } from 'node:stream'
import { within } from '../../../shared/platform/patience.ts'
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
/** Bytes of an agent's own messages: a status, or why a process did not start. */
const mostWords = 4 * 1024
/** Linux's O_PATH, which Node does not name. */
const O_PATH = 0o10000000

/** The agent was not there or did not answer. Nothing was started. */
export class NoAnswer extends Error {
  override name = 'NoAnswer'
}

/** Resolves when an agent answers on this socket. @throws {NoAnswer} */
export async function greet(path: string, ms: number): Promise<void> {
  const socket = openSocket(path)
  try {
    await answered(
      ms,
      new Promise<void>((resolve, reject) => {
        const reader = new FrameReader((type) => {
          if (type === Frame.hello) resolve()
        }, mostWords)
        socket.on('data', (chunk) => attempt(() => reader.read(chunk), socket))
        socket.on('error', () => {})
        socket.on('close', () => reject(new NoAnswer('the agent closed the connection')))
      }),
    )
  } finally {
    socket.destroy()
  }
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

/** Resolves when the agent has ended all processes but its own. @throws {NoAnswer} try again */
export async function endAll(path: string, ms: number): Promise<void> {
  const ending = await ask(path, { end: true }, ms, false)
  ending.close()
}

async function ask(path: string, what: unknown, ms: number, hasTerminal: boolean): Promise<AgentProcess> {
  const words = Buffer.from(JSON.stringify(what))
  if (words.length > mostPayloadBytes) throw new Error('the argv is too long')
  const socket = openSocket(path)
  const process = new AgentProcess(socket, words, hasTerminal)
  try {
    await answered(ms, process.opened)
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
  private isSent = false
  private isFinished = false

  constructor(socket: Socket, request: Buffer, hasTerminal: boolean) {
    this.socket = socket
    this.request = request
    this.opened = this.opening.promise
    this.ended = this.ending.promise
    const output = outputsOf(socket, chunkBytes)
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
    const reader = new FrameReader((type, payload) => this.take(type, payload), mostWords)
    socket.on('data', (chunk) => attempt(() => reader.read(chunk), socket, this.fail))
    socket.on('error', (error) => this.fail(error.message))
    socket.on('close', () => this.finish({ kind: 'lost', why: this.why }))
  }

  close = (): void => this.fail('the connection was closed')

  private take(type: number, payload: Buffer) {
    if (type === Frame.hello) return this.send()
    if (type === Frame.started) return this.opening.resolve()
    if (type === Frame.failed) return this.fail(payload.subarray(0, 300).toString())
    if (type === Frame.stdout) return this.outputs.stdout.push(payload)
    if (type === Frame.stderr) return this.outputs[this.resize ? 'stdout' : 'stderr'].push(payload)
    if (type !== Frame.exit || payload.length !== 4) throw new Error('unexpected')
    this.finish({ kind: 'exited', code: payload.readUInt32BE() })
  }

  /** Sent only once the agent has answered: a dying agent may also accept a connection. */
  private send(): void {
    if (this.isSent) throw new Error('unexpected')
    this.isSent = true
    sendFrame(this.socket, Frame.start, this.request)
  }

  private fail = (why: string): void => {
    this.why = why
    // A paused socket would report its close only after its waiting bytes were read.
    this.socket.destroy()
    this.finish({ kind: 'lost', why })
  }

  private finish(end: ProcessEnd): void {
    if (this.isFinished) return
    this.isFinished = true
    this.opening.reject(this.isSent ? refusal(this.why) : new NoAnswer(this.why))
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

/**
 * The tenant can replace the socket's file by a link, and connecting by path would follow it to any socket of the host.
 * So this opens the file itself, which must be a socket.
 */
function openSocket(path: string): Socket {
  let fd: number
  try {
    fd = openSync(path, O_PATH | constants.O_NOFOLLOW)
  } catch {
    throw new NoAnswer('the agent is not there')
  }
  if (!fstatSync(fd).isSocket()) {
    closeSync(fd)
    throw new NoAnswer('the agent’s socket is none')
  }
  // This path is also short enough for a socket, which may have 107 bytes, however long the folder's is.
  const socket = connect(`/proc/self/fd/${fd}`)
  let isOpen = true
  const close = () => {
    if (isOpen) closeSync(fd)
    isOpen = false
  }
  socket.once('connect', close).once('close', close)
  return socket
}

function attempt(read: () => void, socket: Socket, fail?: (reason: string) => void): void {
  try {
    read()
  } catch {
    fail?.('what came from the sandbox made no sense')
    socket.destroy()
  }
}

const answered = (ms: number, answer: Promise<void>): Promise<void> =>
  within(ms, answer, () => {
    throw new Error(`the agent did not answer within ${ms} ms`)
  })
