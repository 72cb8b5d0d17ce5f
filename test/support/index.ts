import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { inject } from 'vitest'
import { startWatchdog } from '../../scripts/supervisor/watchdog.ts'
import { openDatabase } from '../../shared/data/database.ts'
import { type Keys, keysFor } from '../../shared/platform/keys.ts'
import { connectRedis } from '../../shared/platform/redis.ts'
import { readSettings } from '../../shared/platform/settings.ts'
import { destroyAllSandboxes as endLocalPods } from '../../workers/drivers/local/destroy-all.ts'
import { signUp } from './account.ts'
import { dropDatabase, makeDatabase } from './database.ts'
import { eventually, patientEnv } from './eventually.ts'
import {
  assertNoOrphans,
  assertNoRepeatedKeys,
  assertNoTimerWarnings,
  destroyAllSandboxes,
} from './orphans.ts'
import { type Process, startProcess } from './process.ts'
import { startPostgres, startRedis } from './services.ts'
import { openWireIn } from './wire.ts'
import type { World, WorldOptions } from './world.ts'

export type { Process, World, WorldOptions }

/**
 * Starts a complete Sandlot for one test, with its own database, Redis, processes and accounts.
 * Disposal stops everything, and fails if a pod, process, job, connection or unfinished row remains.
 */
export async function startWorld(options: WorldOptions = {}): Promise<World> {
  const { apis = 1, workers = 1, driver = 'local' } = options
  await using undo = new AsyncDisposableStack()
  const watchdog = startWatchdog()
  undo.defer(() => watchdog.dismiss())
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-world-'))
  watchdog.remove(folder)
  undo.defer(() => rmSync(folder, { recursive: true, force: true }))

  const [redisPlug, postgresPlug, cluster] = await Promise.all([
    startRedis(folder, watchdog),
    options.separatePostgres ? startPostgres(folder, watchdog) : undefined,
    driver === 'kubernetes' ? installNamespaceIn(folder) : undefined,
  ])
  undo.defer(() => redisPlug.stop())
  if (postgresPlug) undo.defer(() => postgresPlug.stop())
  if (cluster) undo.defer(() => cluster.remove())
  // Ends pods that remain after a failed test.
  else undo.defer(async () => void (await endLocalPods(join(folder, 'sandboxes'))))
  const wire = options.wire && cluster ? await openWireIn(folder, cluster) : undefined
  if (wire) undo.defer(() => wire.close())

  const database = await makeDatabase(postgresPlug?.url)
  undo.defer(() => dropDatabase(database))
  const env: Record<string, string> & Keys = {
    ...testEnv,
    DATABASE_URL: database.url,
    REDIS_URL: redisPlug.url,
    JWT_SECRET: randomBytes(32).toString('hex'),
    SECRETS_KEY: randomBytes(32).toString('hex'),
    ...(cluster?.env ?? localEnv(folder)),
    ...options.env,
  }
  const settings = readSettings(env)
  const db = openDatabase(database.url, { connections: 4 })
  undo.defer(() => db.close())
  const redis = connectRedis(redisPlug.url, 'retry', pino({ level: 'silent' }))
  undo.defer(() => redis.disconnect())

  const processes: Process[] = []
  const world: World = {
    settings,
    db,
    redis,
    apis: [],
    workers: [],
    plugs: { redis: redisPlug, postgres: postgresPlug },
    cluster,
    wire,
    folder,
    url: (index = 0) => world.apis[index]!.url,
    account: (account) => signUp(world, account),
    startApi: (more) => start('api', world.apis, more),
    startWorker: (more) => start('worker', world.workers, more),
    startDoomedWorker: (point, more) =>
      start('worker', world.workers, { ...more, CRASH_AT: point }, 'doomedWorker'),
    startFreezingWorker: (point, more) =>
      start('worker', world.workers, { ...more, FREEZE_AT: point }, 'doomedWorker'),
    eventually,
    async [Symbol.asyncDispose]() {
      await using _rest = rest
      await redisPlug.start()
      await postgresPlug?.start()
      wire?.repair()
      if (world.workers.length > 0) await destroyAllSandboxes(world)
      await Promise.all(processes.map((process) => process.stop()))
      await assertNoOrphans(world)
      assertNoTimerWarnings(processes)
      assertNoRepeatedKeys(processes)
    },
  }

  async function start(
    kind: 'api' | 'worker',
    into: Process[],
    more: Record<string, string> = {},
    entry?: 'doomedWorker',
  ) {
    const name = `${kind}-${processes.filter((process) => process.kind === kind).length}`
    const given = { ...env, ...wire?.env, ...more } as typeof env
    const itsEnv = given.KEEP_SECRETS_KEY ? given : { ...given, ...keysFor(kind, given) }
    const process = startProcess({ kind, name, folder, env: itsEnv, watchdog, entry })
    processes.push(process)
    into.push(process)
    // A doomed worker may exit before it is ready.
    await (more.CRASH_AT ? Promise.race([process.ready, process.ended]) : process.ready)
    return process
  }
  undo.defer(async () => {
    await Promise.all(processes.map((process) => process.kill()))
  })

  await Promise.all([
    ...Array.from({ length: apis }, () => world.startApi()),
    ...Array.from({ length: workers }, () => world.startWorker()),
  ])
  const rest = undo.move()
  return world
}

/** Installs a namespace. The import is dynamic, because only worlds on a cluster need the module. */
const installNamespaceIn = async (folder: string) => (await import('./namespace.ts')).installNamespace(folder)

/** Disables rate limits and slow password hashes. */
const testEnv = {
  ...patientEnv,
  NODE_ENV: 'test',
  PORT: '0',
  INTERNAL_PORT: '0',
  RPC_PORT: '0',
  PASSWORD_SCRYPT_LOG_N: '10',
  RATE_SANDBOX_OPS_PER_MINUTE: '1000000',
  RATE_SANDBOX_LIFECYCLE_PER_MINUTE: '1000000',
  RATE_CONNECTIONS_PER_MINUTE: '1000000',
  RATE_SIGNUP_PER_MINUTE: '1000000',
  RATE_LOGIN_PER_MINUTE: '1000000',
  RATE_LOGIN_ACCOUNT_PER_MINUTE: '1000000',
  RATE_MCP_PER_MINUTE: '1000000',
  RATE_READS_PER_MINUTE: '1000000',
  RATE_CHANGES_PER_MINUTE: '1000000',
  RECONCILE_INTERVAL_SECONDS: '1',
  // A watchdog thread takes 10 to 40 ms of CPU time. test/stall.test.ts and test/start use one.
  EVENT_LOOP_STALL_SECONDS: '0',
}

function localEnv(folder: string): Record<string, string> {
  const { bwrap } = inject('services')
  return {
    SANDBOX_DRIVER: 'local',
    SANDBOX_LOCAL_DIR: join(folder, 'sandboxes'),
    ...(bwrap ? { SANDBOX_LOCAL_BWRAP: bwrap } : {}),
  }
}
