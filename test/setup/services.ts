/**
 * Starts PostgreSQL and Redis for a test run, independently of `npm start`.
 * Tests read the addresses with `inject('services')`.
 */
import { mkdirSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { watchParent } from '../../scripts/parent.mjs'
import { findBubblewrap } from '../../scripts/services/bubblewrap.ts'
import { postgresUrl, postgresUser, preparePostgres } from '../../scripts/services/postgres.ts'
import { prepareRedis, redisSocket, redisUrl } from '../../scripts/services/redis.ts'
import { startService } from '../../scripts/services/service.ts'
import { startWatchdog } from '../../scripts/supervisor/watchdog.ts'
import { type Bundle, bundleServer } from './bundle.ts'

export interface Services {
  /** Has a short path. Removed when the run ends, even if the run is killed. */
  folder: string
  postgres: {
    /** Folder of the socket. `user` is a superuser and accepts any password. */
    socketDir: string
    user: string
    /** URL of the empty database `sandlot`. Tests create separate databases. */
    url: string
    pid: number
  }
  redisUrl: string
  redis: { socket: string; pid: number }
  /** Path to bubblewrap, or undefined if not installed. */
  bwrap: string | undefined
  bundle: Bundle
}

declare module 'vitest' {
  export interface ProvidedContext {
    services: Services
  }
}

const awaitNamespacesRemoved = async () => (await import('../support/namespace.ts')).awaitRemoved()

export default async function startServices(project: TestProject) {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-test-'))
  const watchdog = startWatchdog()
  watchdog.remove(folder)
  // The watchdog cleans up.
  watchParent(() => process.kill(process.pid, 'SIGKILL'))

  const [postgres, redis, bwrap, bundle] = await Promise.all([
    startPostgres(),
    startRedis(),
    findBubblewrap(console.error),
    bundleServer(join(folder, 'server')),
  ])
  project.provide('services', {
    folder,
    postgres: { socketDir: folder, user: postgresUser, url: postgresUrl(folder), pid: postgres.pid },
    redisUrl: redisUrl(folder),
    redis: { socket: redisSocket(folder), pid: redis.pid },
    bwrap,
    bundle,
  })

  async function startPostgres() {
    const place = {
      directory: join(folder, 'postgres'),
      socketDir: folder,
      log: join(folder, 'postgres.log'),
    }
    return startService(await preparePostgres({ ...place, throwaway: true }, watchdog), watchdog)
  }

  async function startRedis() {
    const place = { directory: join(folder, 'redis'), socketDir: folder, log: join(folder, 'redis.log') }
    mkdirSync(place.directory)
    return startService(await prepareRedis(place, console.error), watchdog)
  }

  return async () => {
    await Promise.all([postgres.stop(), redis.stop(), process.env.KUBECONFIG && awaitNamespacesRemoved()])
    watchdog.dismiss()
  }
}
