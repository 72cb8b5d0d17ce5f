/** Local drivers and workers for tests of local features. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { pino } from 'pino'
import { afterAll, beforeAll, inject, onTestFinished } from 'vitest'
import type { Driver, PodDeath } from '../../workers/drivers/driver.ts'
import { destroyAllSandboxes } from '../../workers/drivers/local/destroy-all.ts'
import { LocalDriver } from '../../workers/drivers/local/index.ts'
import { examineMachine } from '../../workers/drivers/local/machine.ts'
import { localSettings } from './local-settings.ts'
import { untilReady } from './processes.ts'
import { newSandboxId, ofSandbox } from './requests.ts'

export const bwrap = process.env.SANDBOX_LOCAL_BWRAP ?? inject('services')?.bwrap
/** Holds the sandboxes of one test file: see `keepDirectory`. */
export const directory = mkdtempSync(join(tmpdir(), 'sandlot-local-'))
export const machine = examineMachine(localSettings({ directory, bwrap }))
export const hasCgroups = machine.cgroups.flatMap((parent) => parent.controllers).length === 3

/**
 * Creates the directory before a file's tests, and afterwards deletes it with all processes. Call this at the
 * top of the file.
 */
export function keepDirectory(): void {
  beforeAll(() => void mkdirSync(directory, { recursive: true, mode: 0o700 }))
  afterAll(async () => {
    await destroyAllSandboxes(directory)
    rmSync(directory, { recursive: true })
  })
}

interface LogLine {
  level: number
  msg: string
}

interface OpenOptions {
  directory?: string
  bwrap?: string
  installationId?: string
  more?: Record<string, string>
}

export function openDriver(options: OpenOptions = {}): { driver: Driver; log: LogLine[] } {
  const log: LogLine[] = []
  const driver = new LocalDriver({
    settings: localSettings({ directory, bwrap, ...options }),
    installationId: options.installationId ?? 'tests',
    log: pino({}, { write: (line: string) => log.push(JSON.parse(line)) }),
  })
  return { driver, log }
}

export async function createReady(options: OpenOptions & { deadlineSeconds?: number } = {}) {
  const { driver } = openDriver(options)
  const pod = await driver.create({
    ...ofSandbox(),
    image: 'any',
    deadlineSeconds: options.deadlineSeconds ?? 120,
  })
  onTestFinished(async () => {
    await driver.delete(pod)
    await driver.close()
  })
  await untilReady(driver, pod)
  return { driver, pod }
}

interface WorkerOptions {
  directory?: string
  bwrap?: string
  sandboxId?: string
  script?: string
  /** User that runs the driver if the tests run as root. */
  uid?: number
  /** Path of a file that is open from the start. */
  inherits?: string
}

export function startWorker(options: WorkerOptions) {
  const file = join(import.meta.dirname, 'local-worker.ts')
  const words = [
    options.directory ?? directory,
    options.bwrap ?? bwrap ?? '',
    options.sandboxId ?? newSandboxId(),
  ]
  const ids = options.uid === undefined ? {} : { uid: options.uid, gid: options.uid }
  const inherited = options.inherits ? openSync(options.inherits, 'w') : ('ignore' as const)
  const child: ChildProcess = spawn(process.execPath, [file, ...words, options.script ?? ''], {
    detached: true,
    stdio: ['pipe', 'pipe', 'inherit', ...Array.from({ length: 20 }, () => inherited)],
    ...ids,
  })
  if (typeof inherited === 'number') closeSync(inherited)
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]()
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    process.kill(-child.pid!, 'SIGKILL')
    await once(child, 'exit')
  }
  onTestFinished(kill)
  return {
    pid: child.pid!,
    kill,
    go: () => void child.stdin!.write('go\n'),
    line: async () => String((await lines.next()).value),
  }
}

export async function deathOf(driver: Driver, name: string): Promise<PodDeath | undefined> {
  return (await driver.list()).find((pod) => pod.name === name)?.death
}

export const killFirstProcess = (name: string): void => void process.kill(firstPid(name), 'SIGKILL')

function firstPid(name: string): number {
  const status = readFileSync(join(directory, name, 'status'), 'utf8')
  return Number(/"child-pid": (\d+)/.exec(status)![1])
}

/** Returns the pid of the oldest child of the first process. An earlier orphan may take the agent's place. */
export function agentPid(name: string): number {
  const first = firstPid(name)
  return Number.parseInt(readFileSync(`/proc/${first}/task/${first}/children`, 'utf8'), 10)
}

/** Finds processes by searching the command lines of all processes on the machine. */
export function findProcesses(text: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map(Number)
    .filter((pid) => commandOf(pid).includes(text))
}

export function openFiles(pid: number): string[] {
  const folder = `/proc/${pid}/fd`
  return readdirSync(folder).flatMap((fd) => {
    try {
      return [readlinkSync(join(folder, fd))]
    } catch {
      return []
    }
  })
}

export function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1')
  } catch {
    return ''
  }
}
