/**
 * Connects to a sandbox's agent. A process uses three connections: `main` for the request, stdin and status,
 * and `stdout` and `stderr` for output.
 *
 * All received data is untrusted, because the tenant may replace the agent.
 */
import { randomUUID } from 'node:crypto'
import { closeSync, openSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { withTimeout } from '../../../shared/lib/timeout.ts'
import {
  DriverUnavailable,
  PodExhausted,
  PortRefused,
  type Process,
  type ProcessExit,
  type StartOptions,
  type TerminalSize,
} from '../driver.ts'
import { duplexOf } from '../duplex.ts'
import { usedUpBy } from '../exhausted.ts'

/** Maximum total size of a process's status lines. */
const maxStatusBytes = 4 * 1024
const O_PATH = 0o10000000

/**
 * The agent is missing, or exited before it responded. A retry is safe: a process that was already started
 * loses its stdin, which makes a worker's shell exit.
 */
export class NoAnswer extends Error {
  override name = 'NoAnswer'
}

/** Prefixes of the agent's error messages. They must match `agent.mjs` and `terminal.mjs`. */
const noTerminal = 'no terminal: '
const noListener = 'no process listens'

type AgentRequest = { argv: readonly string[]; tty?: TerminalSize | undefined } | { port: number }

/**
 * Starts a process through the agent whose socket is at `path`.
 * @throws {NoAnswer} if the agent is missing or exits; the caller can retry
 * @throws {PodExhausted} if the sandbox has exhausted a resource that the process needs
 * @throws {DriverUnavailable} if terminals are unavailable
 */
export async function startProcess(
  path: string,
  argv: readonly string[],
  ms: number,
  { tty }: StartOptions = {},
): Promise<Process> {
  const process = await ask(path, { argv, tty }, ms)
  if (!tty) return process
  // stderr is empty, but its socket closes only once it has been read.
  process.stderr.resume()
  return Object.assign(process, { resize: process.setSize })
}

export async function openPort(path: string, port: number, ms: number): Promise<Duplex> {
  return duplexOf(await ask(path, { port }, ms), (why) => new Error(why))
}

async function ask(path: string, request: AgentRequest, ms: number): Promise<AgentProcess> {
  const process = new AgentProcess(openSockets(path), request)
  try {
    await withTimeout(ms, process.opened, () => {
      throw new Error(`the agent did not respond within ${ms} ms`)
    })
    return process
  } catch (error) {
    process.close()
    throw error
  }
}

interface Sockets {
  main: Socket
  stdout: Socket
  stderr: Socket
}

/** A status line from the agent. The tenant may have written it, so every field is validated. */
interface Status {
  started?: unknown
  exit?: unknown
  failed?: unknown
}

class AgentProcess implements Process {
  readonly stdin: Socket
  readonly stdout: Socket
  readonly stderr: Socket
  private readonly opening = Promise.withResolvers<void>()
  private readonly ending = Promise.withResolvers<ProcessExit>()
  readonly opened = this.opening.promise
  readonly ended = this.ending.promise
  private stage: 'starting' | 'running' | 'finished' = 'starting'
  private readonly status: Buffer[] = []
  private statusBytes = 0

  constructor({ main, stdout, stderr }: Sockets, request: AgentRequest) {
    this.stdin = main
    this.stdout = stdout
    this.stderr = stderr
    let why = 'the sandbox closed the connection'
    main.on('error', (error) => {
      why = error.message
    })
    main.on('data', (chunk) => this.read(chunk))
    for (const event of ['end', 'close']) main.on(event, () => this.lose(why, (why) => new NoAnswer(why)))
    const id = randomUUID()
    for (const [role, socket] of Object.entries({ stdout, stderr })) {
      // A broken connection ends the stream; `ended` reports the reason.
      socket.on('error', () => {})
      socket.write(`${JSON.stringify({ id, role })}\n`)
    }
    main.write(`${JSON.stringify({ id, role: 'main', ...request })}\n`)
  }

  close = (): void => {
    this.lose('the connection was closed')
    for (const socket of [this.stdin, this.stdout, this.stderr]) socket.destroy()
  }

  setSize = (size: TerminalSize): Promise<void> =>
    new Promise((resolve) => {
      if (!this.stdout.writable) return resolve()
      this.stdout.write(`${JSON.stringify(size)}\n`, () => resolve())
    })

  private read(chunk: Buffer): void {
    if (this.stage === 'finished') return
    this.status.push(chunk)
    this.statusBytes += chunk.length
    if (this.statusBytes > maxStatusBytes) this.refuse()
    else if (chunk.includes('\n')) this.takeLines()
  }

  private takeLines(): void {
    const lines = Buffer.concat(this.status.splice(0)).toString().split('\n')
    this.status.push(Buffer.from(lines.pop()!))
    for (const line of lines) this.take(line)
  }

  private take(line: string): void {
    const { started, exit, failed } = parseStatus(line)
    const isStart = started === true && this.stage === 'starting'
    if (isStart) {
      this.stage = 'running'
      this.opening.resolve()
    } else if (typeof failed === 'string') {
      // A running process may also fail, when the program of its terminal ends first.
      this.lose(failed.slice(0, 300), () => refusal(failed))
    } else if (typeof exit === 'number' && this.stage === 'running') {
      this.finish({ kind: 'exited', code: exit })
    } else this.refuse()
  }

  private refuse(): void {
    if (this.stage === 'finished') return
    this.lose('the sandbox sent an invalid status')
    this.close()
  }

  private lose(why: string, errorOf = (why: string): Error => new Error(why)): void {
    if (this.stage === 'starting') this.opening.reject(errorOf(why))
    this.finish({ kind: 'lost', why })
  }

  /** Reports how the process ended. The output streams stay open until they have been read to the end. */
  private finish(end: ProcessExit): void {
    if (this.stage === 'finished') return
    this.stage = 'finished'
    this.stdin.destroy()
    this.ending.resolve(end)
  }
}

function parseStatus(line: string): Status {
  try {
    return JSON.parse(line) ?? {}
  } catch {
    return {}
  }
}

function refusal(why: string): Error {
  if (why.startsWith(noTerminal)) return new DriverUnavailable(why)
  if (why.startsWith(noListener)) return new PortRefused(why)
  const resource = usedUpBy(why)
  return resource ? new PodExhausted(resource, why) : new Error(why)
}

/** Connects to the agent through `/proc/self/fd`, because a socket's path is limited to 107 bytes. */
function openSockets(path: string): Sockets {
  let fd: number
  try {
    fd = openSync(path, O_PATH)
  } catch {
    throw new NoAnswer('the agent is missing')
  }
  // `connect` connects before it returns, so the descriptor can be closed afterwards.
  const open = (allowHalfOpen = false) => connect({ path: `/proc/self/fd/${fd}`, allowHalfOpen })
  try {
    return { main: open(true), stdout: open(), stderr: open() }
  } finally {
    closeSync(fd)
  }
}
