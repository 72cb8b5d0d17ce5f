/** An API or worker process, started as the Procfile starts it, from the bundle of the run. */
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
  /** Where a worker takes calls; an API has none. */
  callsUrl: string
  /** Resolves when it listens (an API) or works (a worker). */
  ready: Promise<void>
  /** How it ended: its exit code, or the signal that killed it. */
  ended: Promise<number | NodeJS.Signals>
  /** Every line it has logged so far, and what it printed besides. */
  lines: Line[]
  signal(signal: NodeJS.Signals): void
  /** Whether it stands still, as after SIGSTOP. */
  isFrozen(): boolean
  /** Whether it runs, and does not stand still. */
  isWell(): boolean
  /** Whether it ended in order. */
  hasStopped(): boolean
  /** SIGTERM. @throws when it does not end with exit code 0; does nothing for one that has ended */
  stop(): Promise<void>
  /** SIGKILL. */
  kill(): Promise<void>
}

export interface Line extends Record<string, unknown> {
  msg: string
  level?: string
  /** When it came, in milliseconds since 1970: a process may have another time. */
  seenAt?: number
}

export interface ProcessOptions {
  kind: 'api' | 'worker'
  name: string
  folder: string
  env: Record<string, string | undefined>
  watchdog: Watchdog
  /** Which of the bundle's files starts it; that of its kind unless told. */
  entry?: Exclude<keyof Bundle, 'runner'> | undefined
}

const readyWords = { api: 'listening', worker: 'working' }

export function startProcess({ kind, name, folder, env, watchdog, entry = kind }: ProcessOptions): Process {
  const { bundle } = inject('services')
  const child = spawn(process.execPath, [bundle.runner, bundle[entry]], {
    cwd: root,
    env: { PATH: process.env.PATH, HOME: folder, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group of its own, which the watchdog ends with us.
    detached: true,
  })
  const pid = child.pid!
  watchdog.guard('application', pid)
  const log = createWriteStream(join(folder, `${name}.log`))
  const lines: Line[] = []
  const ready = Promise.withResolvers<void>()
  ready.promise.catch(() => {})
  let end: number | NodeJS.Signals | undefined

  const ended = new Promise<number | NodeJS.Signals>((resolve) => {
    function finish(code: number | null, signal: NodeJS.Signals | null) {
      clearInterval(looking)
      if (end !== undefined) return
      end = signal ?? code ?? -1
      watchdog.forget(pid)
      log.end()
      ready.reject(new Error(`${name} ended with ${end}:\n${describe(lines)}`))
      resolve(end)
    }
    child.on('close', finish)
    let looks = 0
    // Node once did not tell for 40 s that a child had ended, which the kernel listed as a zombie: why is not known.
    const looking = setInterval(() => {
      const stat = readStat(pid)
      looks = stat?.[0] === 'Z' ? looks + 1 : 0
      if (looks < 5) return
      console.error(`${name} (${pid}) is a zombie, and Node has not told of its end`)
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
    signal: (signal) => void process.kill(pid, signal),
    isFrozen: () => readStat(pid)?.[0] === 'T',
    isWell: () => end === undefined && !self.isFrozen(),
    hasStopped: () => end === 0,
    async stop() {
      if (end !== undefined) return
      // A process that was frozen would not hear it.
      process.kill(pid, 'SIGCONT')
      process.kill(pid, 'SIGTERM')
      if ((await ended) !== 0)
        throw new Error(`${name} ended with ${end} when it was told to:\n${describe(lines)}`)
    },
    async kill() {
      if (end === undefined) process.kill(pid, 'SIGKILL')
      await ended
    },
  }
  createInterface(child.stderr).on('line', (text) => take({ msg: text }))
  createInterface(child.stdout).on('line', (text) => take(parse(text)))

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

/** @param status as wait(2) gives it, the last field of proc(5)'s stat */
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

/** The last lines, without requests that went well. */
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
    // Started for a whole file, which looks after that itself.
  }
}
