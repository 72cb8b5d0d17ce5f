/** A throw-away PostgreSQL, migrated, and a Redis for one benchmark, in a folder of their own. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { migrate } from '../migrations/run.ts'
import { postgresUrl, preparePostgres } from '../scripts/services/postgres.ts'
import { prepareRedis, redisUrl } from '../scripts/services/redis.ts'
import { startService } from '../scripts/services/service.ts'
import { startWatchdog, type Watchdog } from '../scripts/supervisor/watchdog.ts'

export interface Services extends AsyncDisposable {
  /** Goes with the services; its path is short. */
  folder: string
  databaseUrl: string
  redisUrl: string
  /** Ends what is started with it, also when this process is killed. */
  watchdog: Watchdog
}

/** PostgreSQL writes as it would for an operator: nothing here is faster than it is safe. */
export async function startServices(): Promise<Services> {
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
  await migrate(postgresUrl(folder))
  const rest = undo.move()
  return {
    folder,
    databaseUrl: postgresUrl(folder),
    redisUrl: redisUrl(folder),
    watchdog,
    [Symbol.asyncDispose]: () => rest[Symbol.asyncDispose](),
  }
}
