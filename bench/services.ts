/** A temporary PostgreSQL and Redis for a benchmark. */
import { mkdtempSync, rmSync } from 'node:fs'
import { migrate } from '../migrations/migrate.ts'
import { startWatchdog, type Watchdog } from '../scripts/supervisor/watchdog.ts'
import { startPostgres, startRedis } from '../test/support/services.ts'

export interface Services extends AsyncDisposable {
  /** The path is short enough for sockets. */
  folder: string
  databaseUrl: string
  redisUrl: string
  /** Stops registered processes even if this process is killed. */
  watchdog: Watchdog
}

/** Starts both servers. PostgreSQL writes are as durable as in production. */
export async function startServices(): Promise<Services> {
  await using undo = new AsyncDisposableStack()
  const watchdog = startWatchdog()
  undo.defer(() => watchdog.dismiss())
  const folder = mkdtempSync('/tmp/sandlot-bench-')
  watchdog.remove(folder)
  undo.defer(() => rmSync(folder, { recursive: true, force: true }))

  const [postgres, redis] = await Promise.all([startPostgres(folder, watchdog), startRedis(folder, watchdog)])
  undo.defer(() => postgres.stop())
  undo.defer(() => redis.stop())
  await migrate(postgres.url)
  const rest = undo.move()
  return {
    folder,
    databaseUrl: postgres.url,
    redisUrl: redis.url,
    watchdog,
    [Symbol.asyncDispose]: () => rest[Symbol.asyncDispose](),
  }
}
