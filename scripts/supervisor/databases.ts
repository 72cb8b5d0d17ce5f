/** Starts PostgreSQL and Redis, and finds bubblewrap. Skips each of them that is already configured. */
import { join } from 'node:path'
import { findBubblewrap } from '../services/bubblewrap.ts'
import { postgresUrl, preparePostgres } from '../services/postgres.ts'
import { prepareRedis, redisUrl } from '../services/redis.ts'
import { type Service, startService } from '../services/service.ts'
import { socketFolder } from './data-folder.ts'
import { keepRunning, type Stoppable } from './keep-running.ts'
import type { FoundServices, StackSettings } from './stack-settings.ts'
import type { Watchdog } from './watchdog.ts'

/** @param running receives each started database, so that the caller can stop it after a failure */
export async function startDatabases(
  data: string,
  given: StackSettings,
  watchdog: Watchdog,
  running: Stoppable[],
  report: (line: string) => void,
): Promise<FoundServices> {
  const socketDir = socketFolder(data, watchdog)
  const place = (name: string) => ({
    directory: join(data, name),
    socketDir,
    log: join(data, `${name}.log`),
  })
  const keep = async (service: Service) => {
    running.push(await keepRunning(service.name, () => startService(service, watchdog), report))
  }
  const [bwrap] = await Promise.all([
    given.driver === 'local' && given.bwrap === undefined ? findBubblewrap(report) : given.bwrap,
    given.databaseUrl === undefined && preparePostgres(place('postgres'), watchdog).then(keep),
    given.redisUrl === undefined && prepareRedis(place('redis'), report).then(keep),
  ])
  return {
    databaseUrl: given.databaseUrl ?? postgresUrl(socketDir),
    redisUrl: given.redisUrl ?? redisUrl(socketDir),
    bwrap,
  }
}
