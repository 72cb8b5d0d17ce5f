/** Sandlot for a benchmark: databases, API and worker processes, and one account. */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { root } from '../scripts/root.mjs'
import { findBubblewrap } from '../scripts/services/bubblewrap.ts'
import { keysFor } from '../shared/platform/keys.ts'
import { signUp } from '../test/support/account.ts'
import { sumUp } from '../test/support/metrics.ts'
import { type Services, startServices } from './services.ts'

export interface Stack extends AsyncDisposable {
  /** Uses the account's API key. @throws if the response is not successful */
  request(method: string, path: string, body?: unknown): Promise<Record<string, unknown>>
  countOutcomes(counter: string): Promise<Record<string, number>>
  apis: StartedProcess[]
  workers: StartedProcess[]
  services: Services
  key: string
  /** @param entry main module, relative to the project root or absolute */
  start(entry: string, readyWords: string[], role?: Role): Promise<StartedProcess>
}

type Role = 'api' | 'worker'

/** A process, and the log lines that reported readiness. */
export interface StartedProcess {
  pid: number
  lines: Record<string, unknown>[]
}

export const addressOf = ({ lines }: StartedProcess) => `http://127.0.0.1:${lines[0]!.port}`

interface StackOptions {
  workers?: number
  apis?: number
  /** Main modules of the processes. */
  entries?: { api: string; worker: string }
  /** Called when the databases are running, before anything uses them. */
  prepare?: (services: Services) => Promise<void>
}

/** @param env overrides the benchmark's default settings */
export async function startStack(env: Record<string, string>, options: StackOptions = {}): Promise<Stack> {
  const entries = options.entries ?? { api: 'api/main.ts', worker: 'workers/main.ts' }
  await using undo = new AsyncDisposableStack()
  const services = undo.use(await startServices())
  await options.prepare?.(services)
  const bwrap = await findBubblewrap(console.error)
  const settings = {
    PATH: process.env.PATH,
    DATABASE_URL: services.databaseUrl,
    REDIS_URL: services.redisUrl,
    JWT_SECRET: randomBytes(32).toString('hex'),
    SECRETS_KEY: randomBytes(32).toString('hex'),
    SANDBOX_LOCAL_DIR: join(services.folder, 'sandboxes'),
    ...(bwrap ? { SANDBOX_LOCAL_BWRAP: bwrap } : {}),
    PORT: '0',
    INTERNAL_PORT: '0',
    RPC_PORT: '0',
    RATE_SANDBOX_OPS_PER_MINUTE: '1000000',
    RATE_SANDBOX_LIFECYCLE_PER_MINUTE: '1000000',
    RATE_MCP_PER_MINUTE: '1000000',
    RATE_READS_PER_MINUTE: '1000000',
    RATE_CHANGES_PER_MINUTE: '1000000',
    QUOTA_CONCURRENT_SANDBOXES: '1000',
    ...env,
  }
  const children: ChildProcess[] = []
  undo.defer(async () => void (await Promise.all(children.map(waitForExit))))
  const start = async (
    entry: string,
    readyWords: string[],
    role: Role = entry.startsWith('api') ? 'api' : 'worker',
  ): Promise<StartedProcess> => {
    const child = spawn(process.execPath, [resolve(root, entry)], {
      env: { ...settings, ...keysFor(role, settings) },
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true,
    })
    services.watchdog.guard('application', child.pid!)
    children.push(child)
    child.once('exit', (code, signal) => {
      if (code !== 0) console.error(`${entry}, process ${child.pid}, ended: ${code ?? signal}`)
    })
    return { pid: child.pid!, lines: await linesThatSay(child, readyWords) }
  }
  const [apis, workers] = await Promise.all([
    Promise.all(Array.from({ length: options.apis ?? 1 }, () => start(entries.api, ['listening'], 'api'))),
    Promise.all(
      Array.from({ length: options.workers ?? 1 }, () =>
        start(entries.worker, ['listening', 'working'], 'worker'),
      ),
    ),
  ])
  const base = addressOf(apis[0]!)
  const { key } = await signUp({ url: () => base })
  const rest = undo.move()
  return {
    apis,
    workers,
    services,
    key,
    start,
    request: (method, path, body) => send(base, key, method, path, body),
    countOutcomes: (counter) => sumUp(workers.map(addressOf), counter, 'outcome'),
    [Symbol.asyncDispose]: () => rest[Symbol.asyncDispose](),
  }
}

async function send(base: string, bearer: string | undefined, method: string, path: string, body?: unknown) {
  const response = await fetch(base + path, {
    method,
    headers: {
      ...(bearer ? { authorization: `Bearer ${bearer}` } : {}),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    body: body === undefined ? null : JSON.stringify(body),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`)
  return JSON.parse(text) as Record<string, unknown>
}

async function linesThatSay(child: ChildProcess, words: string[]): Promise<Record<string, unknown>[]> {
  const lines: Record<string, unknown>[] = []
  for await (const text of createInterface(child.stdout!)) {
    const line = JSON.parse(text) as Record<string, unknown>
    if (line.level === 'warn') console.error(line.msg)
    if (line.msg === words[lines.length]) lines.push(line)
    if (lines.length < words.length) continue
    child.stdout!.resume()
    return lines
  }
  throw new Error(`a process ended before it said "${words.join('" and "')}"`)
}

async function waitForExit(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  await ended
}
