import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { postgresUrl, preparePostgres } from '../../scripts/services/postgres.ts'
import { prepareRedis, redisUrl } from '../../scripts/services/redis.ts'
import { type RunningService, type Service, startService } from '../../scripts/services/service.ts'
import type { Watchdog } from '../../scripts/supervisor/watchdog.ts'
import { readStat } from '../../shared/platform/process-stat.mjs'
import { eventually } from './eventually.ts'
import { unlessGone } from './unless-gone.ts'

/** A world's own PostgreSQL or Redis server, which tests may stop, kill, freeze and empty. */
export interface Plug {
  url: string
  stop(): Promise<void>
  kill(): Promise<void>
  freeze(): void
  /** Restarts or resumes the server at the same address. Does nothing if it is running. */
  start(): Promise<void>
}

export async function startRedis(folder: string, watchdog: Watchdog): Promise<Plug> {
  const socketDir = join(folder, 'r')
  mkdirSync(socketDir)
  const service = await prepareRedis(
    { directory: join(folder, 'redis'), socketDir, log: join(folder, 'redis.log') },
    console.error,
  )
  return plug(service, redisUrl(socketDir), watchdog)
}

export async function startPostgres(folder: string, watchdog: Watchdog): Promise<Plug> {
  const socketDir = join(folder, 'p')
  mkdirSync(socketDir)
  const place = { directory: join(folder, 'postgres'), socketDir, log: join(folder, 'postgres.log') }
  const service = await preparePostgres(place, watchdog)
  return plug(service, postgresUrl(socketDir), watchdog)
}

/**
 * Signals a server and its children. PostgreSQL's backends have separate process groups.
 * @returns the pids of all signalled processes
 */
function signalAll(pid: number, signal: NodeJS.Signals): number[] {
  // A stopped process cannot start more children.
  if (signal !== 'SIGCONT') process.kill(pid, 'SIGSTOP')
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
  const all = [pid, ...children.split(' ').filter(Boolean).map(Number)]
  for (const each of all) unlessGone(() => process.kill(each, signal))
  return all
}

/** Whether a process no longer exists. Zombies count as gone, because they hold no resources. */
const isGone = (pid: number) => ['Z', 'X', undefined].includes(readStat(pid)?.[0])

async function plug(service: Service, url: string, watchdog: Watchdog): Promise<Plug> {
  let running: RunningService | undefined = await startService(service, watchdog)
  let isFrozen = false
  const wake = () => {
    if (isFrozen && running) signalAll(running.pid, 'SIGCONT')
    isFrozen = false
  }
  return {
    url,
    async stop() {
      wake()
      await running?.stop()
      running = undefined
    },
    async kill() {
      if (!running) return
      const all = signalAll(running.pid, 'SIGKILL')
      await running.ended
      running = undefined
      // PostgreSQL refuses to start while a process uses the previous shared memory.
      await eventually(() => all.every(isGone), 10_000)
    },
    freeze() {
      signalAll(running!.pid, 'SIGSTOP')
      isFrozen = true
    },
    async start() {
      wake()
      running ??= await startService(service, watchdog)
    },
  }
}
