/**
 * The driver's end of a process in a sandbox. Whatever comes from there is untrusted: frames are bounded, and an
 * invalid one ends the connection.
 */
import { closeSync, constants, fstatSync, openSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { Writable } from 'node:stream'
import { within } from '../../../shared/platform/patience.ts'
import { DriverUnavailable, type Process, type ProcessEnd, type StartOptions } from '../driver.ts'
import { outputsOf } from '../output.ts'
import { Frame, FrameReader, MAX_PAYLOAD, sendFrame } from './frames.mjs'

const CHUNK = 64 * 1024
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

/** The answer of an agent that cannot make a terminal. */
const NO_TERMINAL = 'no terminal: '

/**
 * Resolves when the process runs.
 * @throws {NoAnswer} nothing was started; try again
 * @throws {DriverUnavailable} there are no terminals
 * @throws {Error} the process cannot be started, or whether it was is not known
 */
export async function startProcess(
  path: string,
  argv: readonly string[],
  ms: number,
  { tty }: StartOptions = {},
): Promise<Process> {
  const words = Buffer.from(JSON.stringify(tty ? { argv, tty } : argv))
  if (words.length > MAX_PAYLOAD) throw new Error('the argv is too long')
  const socket = openSocket(path)
  const opened = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<ProcessEnd>()
  const output = outputsOf(socket, CHUNK)
  const stdout = output()
  const stderr = output()
  const stdin = input()
  let why = 'the sandbox closed the connection'

  const reader = new FrameReader((type, payload) => {
    if (type === Frame.hello) return send()
    if (type === Frame.started) return opened.resolve()
    if (type === Frame.failed) return fail(payload.subarray(0, 300).toString())
    if (type === Frame.stdout) return stdout.push(payload)
    if (type === Frame.stderr) return (tty ? stdout : stderr).push(payload)
    if (type === Frame.exit && payload.length === 4)
      return finish({ kind: 'exited', code: payload.readUInt32BE() })
    throw new Error('unexpected')
  }, mostWords)
  let isSent = false
  let isFinished = false

  socket.on('data', (chunk) => attempt(() => reader.read(chunk), socket, fail))
  socket.on('error', (error) => fail(error.message))
  socket.on('close', () => finish({ kind: 'lost', why }))
  try {
    await answered(ms, opened.promise)
  } catch (error) {
    socket.destroy()
    throw error
  }
  const close = () => fail('the connection was closed')
  const process = { stdin, stdout: stdout.stream, stderr: stderr.stream, ended: ended.promise, close }
  if (!tty) return process
  stderr.end()
  return {
    ...process,
    resize: (size) =>
      new Promise((resolve) => {
        sendFrame(socket, Frame.resize, Buffer.from(JSON.stringify(size)), () => resolve())
      }),
  }

  /** Sent only once the agent has answered: a dying agent may also accept a connection. */
  function send(): void {
    if (isSent) throw new Error('unexpected')
    isSent = true
    sendFrame(socket, Frame.start, words)
  }

  function input(): Writable {
    return new Writable({
      write(chunk: Buffer, _encoding, done) {
        for (let start = 0; start < chunk.length; start += CHUNK) {
          const isLast = start + CHUNK >= chunk.length
          // An ended process reads no more, which is not the writer's fault.
          const sent = isLast ? () => done() : undefined
          sendFrame(socket, Frame.stdin, chunk.subarray(start, start + CHUNK), sent)
        }
        if (chunk.length === 0) done()
      },
      final(done) {
        sendFrame(socket, Frame.stdinEnd, undefined, () => done())
      },
    })
  }

  function fail(reason: string): void {
    why = reason
    // A paused socket would report its close only after its waiting bytes were read.
    socket.destroy()
    finish({ kind: 'lost', why })
  }

  function finish(end: ProcessEnd): void {
    if (isFinished) return
    isFinished = true
    const Failure = isSent ? (why.startsWith(NO_TERMINAL) ? DriverUnavailable : Error) : NoAnswer
    opened.reject(new Failure(why))
    for (const each of [stdout, stderr]) each.end()
    stdin.destroy()
    socket.destroy()
    ended.resolve(end)
  }
}

/**
 * The tenant can write where the socket's file is. Connecting by its path would follow a link there to any socket of
 * the host. So the file itself is opened, and must be a socket.
 */
function openSocket(path: string): Socket {
  if (process.platform !== 'linux') return connect(path)
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
