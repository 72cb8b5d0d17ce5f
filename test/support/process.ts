/** An API or worker process, started as the Procfile starts it. */
import { spawn } from 'node:child_process'
import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { onTestFailed } from 'vitest'
import { compileCache, root } from '../../scripts/root.mjs'
import type { Watchdog } from '../../scripts/supervisor/watchdog.ts'
import { readStat } from '../../shared/platform/process-stat.mjs'

export interface Process {
  kind: 'api' | 'worker'
  name: string
  pid: number
  /** Base address of the API; a worker has none. */
  url: string
  internalUrl: string
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
  /** A file that starts it in place of the Procfile's. */
  entry?: string | undefined
}

const entries = { api: 'api/main.ts', worker: 'workers/main.ts' }
const readyWords = { api: 'listening', worker: 'working' }

export function startProcess({ kind, name, folder, env, watchdog, entry }: ProcessOptions): Process {
  const child = spawn(process.execPath, [entry ?? entries[kind]], {
    cwd: root,
    env: { PATH: process.env.PATH, HOME: folder, NODE_COMPILE_CACHE: compileCache, ...env },
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
    child.on('close', (code, signal) => {
      end = signal ?? code ?? -1
      watchdog.forget(pid)
      log.end()
      ready.reject(new Error(`${name} ended with ${end}:\n${describe(lines)}`))
      resolve(end)
    })
  })
  const self: Process = {
    kind,
    name,
    pid,
    url: '',
    internalUrl: '',
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
      const { port, internal_port } = line as { port?: number; internal_port?: number }
      self.url = `http://127.0.0.1:${port}`
      self.internalUrl = `http://127.0.0.1:${internal_port ?? port}`
    }
    if (line.msg === readyWords[kind]) ready.resolve()
  }
  tellWhenTestFails(self)
  return self
}

function parse(text: string): Line {
  try {
    return JSON.parse(text) as Line
  } catch {
    return { msg: text }
  }
}

/** The last lines, but for requests that went well. */
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
