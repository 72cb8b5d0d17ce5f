/**
 * Starts a PostgreSQL and a Redis for one test run, in a separate folder, independent of `npm start`. A test reads their
 * addresses with `inject('services')`.
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
  /** A folder with a short path, which is removed when the run ends, also when it is killed. */
  folder: string
  postgres: {
    /** The folder of the socket. `user` with any password is a superuser. */
    socketDir: string
    user: string
    /** The empty database `sandlot`. Tests create their own with `CREATE DATABASE`. */
    url: string
    /** The first process of the server, for tests that kill it. */
    pid: number
  }
  redisUrl: string
  redis: { socket: string; pid: number }
  /** The path of bubblewrap; undefined if it is not installed. */
  bwrap: string | undefined
  /** The bundle for API and worker processes. */
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
