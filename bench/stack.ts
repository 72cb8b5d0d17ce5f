/** A whole Sandlot for one benchmark: throw-away databases, one API, one worker, one account. */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { migrate } from '../migrations/run.ts'
import { root } from '../scripts/root.mjs'
import { findBubblewrap } from '../scripts/services/bubblewrap.ts'
import { postgresUrl, preparePostgres } from '../scripts/services/postgres.ts'
import { prepareRedis, redisUrl } from '../scripts/services/redis.ts'
import { startService } from '../scripts/services/service.ts'
import { startWatchdog } from '../scripts/supervisor/watchdog.ts'

export interface Stack extends AsyncDisposable {
  /** Sends a request as the one account. @throws for every answer that is no success */
  request(method: string, path: string, body?: unknown): Promise<Record<string, unknown>>
  /** The sum of a counter over all workers, by the value of its label `outcome`. */
  countOutcomes(counter: string): Promise<Record<string, number>>
}

/** @param env the driver's settings, over those of a machine of its own */
export async function startStack(env: Record<string, string>, workerCount = 1): Promise<Stack> {
  await using undo = new AsyncDisposableStack()
  const watchdog = startWatchdog()
  undo.defer(() => watchdog.dismiss())
  const folder = mkdtempSync('/tmp/sandlot-bench-')
  watchdog.remove(folder)
  undo.defer(() => rmSync(folder, { recursive: true, force: true }))

  const placeOf = (name: string) => ({
    directory: join(folder, name),
    socketDir: folder,
    log: join(folder, `${name}.log`),
  })
  mkdirSync(join(folder, 'redis'))
  const postgres = await startService(await preparePostgres(placeOf('postgres'), watchdog), watchdog)
  undo.defer(() => postgres.stop())
  const redis = await startService(await prepareRedis(placeOf('redis'), console.error), watchdog)
  undo.defer(() => redis.stop())
  const bwrap = await findBubblewrap(console.error)
  await migrate(postgresUrl(folder))

  const settings = {
    PATH: process.env.PATH,
    DATABASE_URL: postgresUrl(folder),
    REDIS_URL: redisUrl(folder),
    JWT_SECRET: randomBytes(32).toString('hex'),
    SECRETS_KEY: randomBytes(32).toString('hex'),
    SANDBOX_LOCAL_DIR: join(folder, 'sandboxes'),
    ...(bwrap ? { SANDBOX_LOCAL_BWRAP: bwrap } : {}),
    PORT: '0',
    INTERNAL_PORT: '0',
    RATE_SANDBOX_OPS_PER_MINUTE: '1000000',
    RATE_SANDBOX_LIFECYCLE_PER_MINUTE: '1000000',
    QUOTA_CONCURRENT_SANDBOXES: '100',
    ...env,
  }
  const start = async (entry: string, readyWords: string[]) => {
    const child = spawn(process.execPath, [join(root, entry)], {
      env: settings,
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true,
    })
    watchdog.guard('application', child.pid!)
    undo.defer(() => endOf(child))
    return await linesThatSay(child, readyWords)
  }
  const [[api], ...workers] = await Promise.all([
    start('api/main.ts', ['listening']),
    ...Array.from({ length: workerCount }, () => start('workers/main.ts', ['listening', 'working'])),
  ])
  const base = `http://127.0.0.1:${api!.port}`
  const key = await makeKey(base)
  const rest = undo.move()
  return {
    request: (method, path, body) => send(base, key, method, path, body),
    async countOutcomes(counter) {
      const sums: Record<string, number> = {}
      for (const [listening] of workers) {
        const text = await (await fetch(`http://127.0.0.1:${listening!.port}/metrics`)).text()
        for (const [, outcome, count] of text.matchAll(
          new RegExp(`^${counter}\\{.*outcome="(\\w+)".*\\} (\\d+)`, 'gm'),
        )) {
          sums[outcome!] = (sums[outcome!] ?? 0) + Number(count)
        }
      }
      return sums
    },
    [Symbol.asyncDispose]: () => rest[Symbol.asyncDispose](),
  }
}

async function makeKey(base: string): Promise<string> {
  const credentials = { email: 'bench@example.com', password: randomBytes(16).toString('hex') }
  const { token } = await send(base, undefined, 'POST', '/v1/auth/signup', credentials)
  const { key } = await send(base, String(token), 'POST', '/v1/api-keys', {})
  return String(key)
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

/** One after the other. */
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

async function endOf(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  await ended
}
