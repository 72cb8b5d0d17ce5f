/** An API or worker process that runs from the bundle. */
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
  /** Base URL. Empty for workers. */
  url: string
  internalUrl: string
  /** RPC address. Empty for APIs. */
  callsUrl: string
  /** Resolves when the API listens, or when the worker accepts jobs. */
  ready: Promise<void>
  ended: Promise<number | NodeJS.Signals>
  lines: Line[]
  repeatedKeys: string[]
  signal(signal: NodeJS.Signals): void
  isFrozen(): boolean
  /** Returns whether the process is running and not frozen. */
  isWell(): boolean
  /** Returns whether the process has exited with code 0. */
  hasStopped(): boolean
  /** Sends SIGTERM if the process is running. @throws if the exit code is not 0 */
  stop(): Promise<void>
  kill(): Promise<void>
}

export interface Line extends Record<string, unknown> {
  msg: string
  level?: string
  /** When the test received the line, in milliseconds since 1970. */
  seenAt?: number
}

interface ProcessOptions {
  kind: 'api' | 'worker'
  name: string
  folder: string
  env: Record<string, string | undefined>
  watchdog: Watchdog
  entry?: Exclude<keyof Bundle, 'runner'> | undefined
}

const readyWords = { api: 'listening', worker: 'working' }

export function startProcess({ kind, name, folder, env, watchdog, entry = kind }: ProcessOptions): Process {
  const { bundle } = inject('services')
  const child = spawn(process.execPath, [bundle.runner, bundle[entry]], {
    cwd: root,
    env: { PATH: process.env.PATH, HOME: folder, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    // Lets the watchdog kill the whole process group.
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
    // Node once reported an exit 40 s after the process had become a zombie.
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

/** @param status in the format of wait(2), from the last field of /proc/PID/stat */
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

/** Whether a log line contains a key twice. JSON.parse drops duplicates, so the original line is longer. */
export const hasRepeatedKey = (text: string, line: Line): boolean =>
  text.startsWith('{') && JSON.stringify(line).length < text.length

/** Returns the last lines, without successful requests. */
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
    // The process serves a whole test file, which handles failures.
  }
}
