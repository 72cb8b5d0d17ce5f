/** Runs `npm start` in a small clone of the project, with stubs for API and worker. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { inject } from 'vitest'
import { root } from '../../scripts/root.mjs'
import { preparePostgres } from '../../scripts/services/postgres.ts'
import { startWatchdog } from '../../scripts/supervisor/watchdog.ts'
import { eventually } from '../support/eventually.ts'

/** Listens on the given ports and prints the stub's state. */
const stub = `
import { createServer } from 'node:http'
const [name] = process.argv.slice(2)
const { HOST, PORT, INTERNAL_HOST, INTERNAL_PORT, RPC_PORT } = process.env
if (name === 'worker') createServer().listen(RPC_PORT, INTERNAL_HOST)
createServer((_, response) => response.end()).listen(INTERNAL_PORT, INTERNAL_HOST, () => console.log(name, 'listens', process.pid))
if (name === 'api') createServer((_, response) => response.end('hello')).listen(PORT, HOST)
process.on('SIGTERM', () => { console.log(name, 'stops'); process.exit() })
`

export const usualProcfile = `
release: echo released
api: node stub.mjs api
worker: node stub.mjs worker
`

/** The folder is deleted at the end of the run, or earlier. */
export function makeRunFolder(prefix: string): string {
  return mkdtempSync(join(inject('services').folder, prefix))
}

let database: Promise<string> | undefined

/** Creates a database once for all clones of this process, as a first start does. */
async function makeDatabase(): Promise<string> {
  const folder = makeRunFolder('database-')
  const directory = join(folder, 'postgres')
  const watchdog = startWatchdog()
  const place = { directory, socketDir: folder, log: join(folder, 'log'), throwaway: true }
  await preparePostgres(place, watchdog)
  watchdog.dismiss()
  return directory
}

/** A clone with a database and a built client, as after a first start. */
export async function startedBefore(procfile?: string, folder?: string): Promise<Clone> {
  database ??= makeDatabase()
  const from = await database
  const clone = new Clone(procfile, folder)
  const data = join(clone.folder, '.data')
  mkdirSync(data, { mode: 0o700 })
  execFileSync('cp', ['-a', from, data])
  writeFileSync(join(clone.folder, 'scripts', 'build-cli.mjs'), 'export async function buildCli() {}\n')
  return clone
}

export class Clone {
  readonly folder: string
  readonly #started: StartedStack[] = []

  constructor(procfile = usualProcfile, folder = makeRunFolder('clone-')) {
    this.folder = folder
    mkdirSync(join(folder, 'cli'), { recursive: true })
    const platform = [
      'keys.ts',
      'process-stat.mjs',
      'seal.ts',
      'settings-pools.ts',
      'liveness-timeouts.ts',
      'settings-schema.ts',
      'settings.ts',
    ]
    const shared = ['contract/shell-words.ts', ...platform.map((name) => `platform/${name}`)]
    for (const name of [
      'scripts',
      'workers/drivers',
      'package.json',
      'package-lock.json',
      'LICENSE',
      'cli/package.json',
      'cli/sandlot.mjs',
      'shared/lib',
      ...shared.map((name) => `shared/${name}`),
    ]) {
      cpSync(join(root, name), join(folder, name), { recursive: true })
    }
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
    writeFileSync(join(folder, 'cli', 'main.ts'), "console.log('the client')\n")
    writeFileSync(join(folder, 'stub.mjs'), stub)
    writeFileSync(join(folder, 'Procfile'), procfile)
  }

  /** @param command `npm start` or its script */
  start(
    environment: Record<string, string> = {},
    command = [process.execPath, 'scripts/start.mjs'],
  ): StartedStack {
    const started = new StartedStack(this.folder, command, environment)
    this.#started.push(started)
    return started
  }

  /** PID of the process that runs the databases and the Procfile. */
  stackPid(): number {
    return Number.parseInt(readFileSync(join(this.folder, '.data', 'stack.lock'), 'utf8'), 10)
  }

  processes(): number[] {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .filter((pid) => isIn(this.folder, pid))
  }

  async untilNothingRuns(milliseconds: number) {
    await eventually(() => this.processes().length === 0, milliseconds).catch(() => {
      throw new Error(`still running: ${this.processes().map(describe).join('; ')}`)
    })
  }

  /** @throws {Error} if a process outlives its stack */
  async [Symbol.asyncDispose]() {
    for (const { child } of this.#started) child.kill('SIGTERM')
    await Promise.all(this.#started.map(({ exit }) => exit))
    await this.untilNothingRuns(5000)
    rmSync(this.folder, { recursive: true, force: true })
  }
}

export class StartedStack {
  readonly child: ChildProcess
  /** The exit code, or 128 + n after signal n. */
  readonly exit: Promise<number>
  output = ''

  constructor(cwd: string, [program, ...args]: string[], environment: Record<string, string>) {
    const kept = Object.entries(process.env).filter(([name]) =>
      /^(PATH|HOME|LANG|XDG_.*|.*_proxy)$/i.test(name),
    )
    this.child = spawn(program!, args, {
      cwd,
      env: {
        ...Object.fromEntries(kept),
        PORT: '0',
        INTERNAL_PORT: '0',
        RPC_PORT: '0',
        SANDBOX_DRIVER: 'kubernetes',
        // The stack exits if the test run is killed.
        SANDLOT_WATCH_PARENT: String(process.pid),
        ...environment,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.output += text
      })
    }
    this.exit = new Promise((resolve) => {
      this.child.on('close', (code, signal) => resolve(code ?? 128 + constants.signals[signal!]))
    })
  }

  async waitForOutput(pattern: RegExp, milliseconds = 30_000): Promise<RegExpMatchArray> {
    const find = () => this.output.match(pattern)
    const hasEnded = () => this.child.exitCode !== null
    await eventually(() => find() || hasEnded(), milliseconds).catch(() => {})
    const found = find()
    if (!found) throw new Error(`the output does not match ${pattern}:\n${this.output}`)
    return found
  }

  ready() {
    return this.waitForOutput(/is ready at (http:\S+)/)
  }
}

function isIn(folder: string, pid: number): boolean {
  try {
    // Zombies have no working directory.
    const cwd = readlinkSync(`/proc/${pid}/cwd`)
    return cwd === folder || cwd.startsWith(`${folder}/`)
  } catch {
    return false
  }
}

function describe(pid: number): string {
  try {
    return `${pid} ${readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')}`
  } catch {
    return String(pid)
  }
}
