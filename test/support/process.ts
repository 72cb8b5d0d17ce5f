/** An API or worker process, started from the bundle of the run. */
import { spawn } from 'node:child_process'
import { createWriteStream } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { inject, onTestFailed } from 'vitest'
import { root } from '../../scripts/root.mjs'
import type { Watchdog } from '../../scripts/supervisor/watchdog.ts'
import { readStat } from '../../shared/platform/process-stat.mjs'
import type { Bundle } from '../setup/bundle.ts'

export interface Process {
  kind: 'api' | 'worker'
  name: string
  pid: number
  /** Base address of the API; a worker has none. */
  url: string
  internalUrl: string
  /** Address of a worker for RPC; an API has none. */
  callsUrl: string
  /** Resolves when an API listens or a worker is ready for jobs. */
  ready: Promise<void>
  /** Its exit code, or the signal that killed it. */
  ended: Promise<number | NodeJS.Signals>
  /** All lines that it has logged or printed. */
  lines: Line[]
  /** Log lines that contain the same key twice. */
  repeatedKeys: string[]
  signal(signal: NodeJS.Signals): void
  /** Whether it is stopped, as after SIGSTOP. */
  isFrozen(): boolean
  /** Whether it is running and not stopped. */
  isWell(): boolean
  /** Whether it exited with code 0. */
  hasStopped(): boolean
  /** Sends SIGTERM, unless it has exited. @throws when its exit code is not 0 */
  stop(): Promise<void>
  /** Sends SIGKILL. */
  kill(): Promise<void>
}

export interface Line extends Record<string, unknown> {
  msg: string
  level?: string
  /** When it was received, in milliseconds since 1970, by the clock of the test. */
  seenAt?: number
}

export interface ProcessOptions {
  kind: 'api' | 'worker'
  name: string
  folder: string
  env: Record<string, string | undefined>
  watchdog: Watchdog
  /** The file of the bundle that starts it. Default: that of its kind. */
  entry?: Exclude<keyof Bundle, 'runner'> | undefined
}

const readyWords = { api: 'listening', worker: 'working' }

export function startProcess({ kind, name, folder, env, watchdog, entry = kind }: ProcessOptions): Process {
  const { bundle } = inject('services')
  const child = spawn(process.execPath, [bundle.runner, bundle[entry]], {
    cwd: root,
    env: { PATH: process.env.PATH, HOME: folder, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A separate process group, which the watchdog kills together with this process.
    detached: true,
  })
  const pid = child.pid!
  watchdog.guard('application', pid)
  const log = createWriteStream(join(folder, `${name}.log`))
  const lines: Line[] = []
  const repeatedKeys: string[] = []
  const ready = Promise.withResolvers<void>()
  ready.promise.catch(() => {})
  let end: number | NodeJS.Signals | undefined

  const ended = new Promise<number | NodeJS.Signals>((resolve) => {
    function finish(code: number | null, signal: NodeJS.Signals | null) {
      clearInterval(checking)
      if (end !== undefined) return
      end = signal ?? code ?? -1
      watchdog.forget(pid)
      log.end()
      ready.reject(new Error(`${name} ended with ${end}:\n${describe(lines)}`))
      resolve(end)
    }
    child.on('close', finish)
    let checks = 0
    // Node once reported the exit of a child only after 40 s, while the kernel listed it as a zombie, for unknown reasons.
    const checking = setInterval(() => {
      const stat = readStat(pid)
      checks = stat?.[0] === 'Z' ? checks + 1 : 0
      if (checks < 5) return
      console.error(`${name} (${pid}) is a zombie, but Node has not reported its exit`)
      finish(...endOf(Number(stat!.at(-1))))
    }, 1_000).unref()
  })
  const self: Process = {
    kind,
    name,
    pid,
    url: '',
    internalUrl: '',
    callsUrl: '',
    ready: ready.promise,
    ended,
    lines,
    repeatedKeys,
    signal: (signal) => void process.kill(pid, signal),
    isFrozen: () => readStat(pid)?.[0] === 'T',
    isWell: () => end === undefined && !self.isFrozen(),
    hasStopped: () => end === 0,
    async stop() {
      if (end !== undefined) return
      // A stopped process does not handle SIGTERM.
      process.kill(pid, 'SIGCONT')
      process.kill(pid, 'SIGTERM')
      if ((await ended) !== 0)
        throw new Error(`${name} exited with ${end} after SIGTERM:\n${describe(lines)}`)
    },
    async kill() {
      if (end === undefined) process.kill(pid, 'SIGKILL')
      await ended
    },
  }
  createInterface(child.stderr).on('line', (text) => take({ msg: text }))
  createInterface(child.stdout).on('line', (text) => {
    const line = parse(text)
    if (hasRepeatedKey(text, line)) repeatedKeys.push(text)
    take(line)
  })

  function take(line: Line) {
    lines.push({ ...line, seenAt: Date.now() })
    log.write(`${JSON.stringify(line)}\n`)
    if (line.msg === 'listening') {
      const { port, internal_port, rpc_port } = line as Record<string, unknown>
      self.url = `http://127.0.0.1:${port}`
      self.internalUrl = `http://127.0.0.1:${internal_port ?? port}`
      if (rpc_port) self.callsUrl = `https://127.0.0.1:${rpc_port}`
    }
    if (line.msg === readyWords[kind]) ready.resolve()
  }
  tellWhenTestFails(self)
  return self
}

/** @param status as returned by wait(2), the last field of proc(5)'s stat */
function endOf(status: number): [number | null, NodeJS.Signals | null] {
  const signal = Object.entries(constants.signals).find(([, number]) => number === (status & 0x7f))
  return signal ? [null, signal[0] as NodeJS.Signals] : [status >> 8, null]
}

function parse(text: string): Line {
  try {
    return JSON.parse(text) as Line
  } catch {
    return { msg: text }
  }
}

/** Reports whether a log line contains the same key twice. JSON.parse drops duplicates, so the line is longer. */
export const hasRepeatedKey = (text: string, line: Line): boolean =>
  text.startsWith('{') && JSON.stringify(line).length < text.length

/** The last lines, without successful requests. */
function describe(lines: Line[]): string {
  const telling = lines.filter((line) => !(line.msg === 'request' && Number(line.status) < 500))
  return telling
    .slice(-20)
    .map((line) => `    ${JSON.stringify(line)}`)
    .join('\n')
}

export const describeProcess = ({ name, pid, lines }: Process) => `${name} (${pid}):\n${describe(lines)}`

function tellWhenTestFails(process: Process) {
  try {
    onTestFailed(() => console.error(describeProcess(process)))
  } catch {
    // Started for a whole file, which handles its failures.
  }
}
