/** Databases of only one world, so that a test may stop, kill, freeze and empty them. */
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { postgresUrl, preparePostgres } from '../../scripts/services/postgres.ts'
import { prepareRedis, redisUrl } from '../../scripts/services/redis.ts'
import { type RunningService, type Service, startService } from '../../scripts/services/service.ts'
import type { Watchdog } from '../../scripts/supervisor/watchdog.ts'
import { readStat } from '../../shared/platform/process-stat.mjs'
import { eventually } from './eventually.ts'
import { unlessGone } from './unless-gone.ts'

export interface Plug {
  url: string
  /** Ends it in order; nothing that it holds is lost. */
  stop(): Promise<void>
  kill(): Promise<void>
  freeze(): void
  /** Starts it again, or wakes it, where it was; does nothing for one that runs. */
  start(): Promise<void>
}

export async function ownRedis(folder: string, watchdog: Watchdog): Promise<Plug> {
  const socketDir = join(folder, 'r')
  mkdirSync(socketDir)
  const service = await prepareRedis(
    { directory: join(folder, 'redis'), socketDir, log: join(folder, 'redis.log') },
    console.error,
  )
  return plug(service, redisUrl(socketDir), watchdog)
}

export async function ownPostgres(folder: string, watchdog: Watchdog): Promise<Plug> {
  const socketDir = join(folder, 'p')
  mkdirSync(socketDir)
  const place = { directory: join(folder, 'postgres'), socketDir, log: join(folder, 'postgres.log') }
  const service = await preparePostgres(place, watchdog)
  return plug(service, postgresUrl(socketDir), watchdog)
}

/**
 * PostgreSQL's backends are children in groups of their own.
 * @returns the pids of all that were signalled
 */
function signalAll(pid: number, signal: NodeJS.Signals): number[] {
  // A process that stands still has no more children.
  if (signal !== 'SIGCONT') process.kill(pid, 'SIGSTOP')
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
  const all = [pid, ...children.split(' ').filter(Boolean).map(Number)]
  // A backend may end while we look.
  for (const each of all) unlessGone(() => process.kill(each, signal))
  return all
}

/** One that nobody has asked how it ended holds nothing. */
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
      // PostgreSQL starts only where no process holds the memory of the one before.
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
