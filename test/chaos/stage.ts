/** A world with 2 APIs and 3 workers. Each process has its own relays to other services. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Driver } from '../../workers/drivers/driver.ts'
import { adminKubeconfig } from '../support/cluster.ts'
import { openWorldDriver } from '../support/drivers.ts'
import { openPair, type Pair, type Server } from '../support/failover.ts'
import { installFullTriggers } from '../support/full-database.ts'
import { type Process, startWorld, type World } from '../support/index.ts'
import { memoryOf } from '../support/memory.ts'
import { fillTables } from '../support/migrations.ts'
import { descriptorsOf } from '../support/raw.ts'
import { openRelay, type Relay } from '../support/relay.ts'
import { openPostgresPair, type PostgresPair, type PostgresServer } from '../support/standby.ts'
import type { Options } from './options.ts'

/** An API or worker. A killed process is replaced. */
export interface Instance {
  name: string
  kind: 'api' | 'worker'
  process: Process
  wires: { postgres: Relay; redis: Relay }
  toWorkers: Map<Instance, Relay>
  setClock(ms: number): void
  /** Memory in bytes and number of open files after the start. */
  usual: { memory: number; descriptors: number }
  /** Whether a fault has ended the process or will end it soon. */
  isBeingEnded: boolean
}

export interface Stage extends AsyncDisposable {
  world: World
  driver: Driver
  instances: Instance[]
  /** Includes processes that have exited. */
  processes: Process[]
  /** Replaces an exited process. @param harm applied while the new process starts */
  replace(instance: Instance, harm?: (process: Process) => Promise<void>): Promise<void>
  redisPair: Pair
  leadRedis(to: Server): void
  postgresPair: PostgresPair
  /** Sends new PostgreSQL connections to this server. */
  leadPostgres(to: PostgresServer): void
  /** Returns the instances with the oldest keys. Before a rotation begins, these are all instances. */
  withOldestKeys(): Instance[]
  /** Assigns new keys, which take effect at the next start. */
  rotateKeys(instance: Instance): void
}

export const apiCount = 2
export const workerCount = 3
/** Concurrent sandboxes per account. Clients try to create more. */
export const cap = 3

/** Number of sandbox rows that ended before the run. */
const pastRows = 50_000

const preload = pathToFileURL(join(import.meta.dirname, 'preload.mjs')).href

export async function openStage({ driver: driverName }: Options): Promise<Stage> {
  await using undo = new AsyncDisposableStack()
  const relays: Relay[] = []
  // Disposed of after the world, so that processes shut down gracefully.
  undo.defer(() => {
    for (const relay of relays) relay.close()
  })
  const world = undo.use(
    await startWorld({
      driver: driverName,
      apis: 0,
      workers: 0,
      separatePostgres: true,
      wire: true,
      env: {
        ...keysAt(0),
        QUOTA_CONCURRENT_SANDBOXES: String(cap),
        QUOTA_SANDBOX_HOURS_PER_MONTH: '100000',
        WARM_POOL_SIZE: '2',
        SANDBOX_MEMORY: '128Mi',
      },
    }),
  )
  const postgresPair = await openPostgresPair(world)
  undo.defer(() => postgresPair.end())
  const instances: Instance[] = []
  const processes: Process[] = []

  const wire = async (...places: Parameters<typeof openRelay>) => {
    const relay = await openRelay(...places)
    relays.push(relay)
    return relay
  }

  /** Opens an instance's relays. Returns the settings that use them. */
  async function wiresOf(name: string) {
    const folder = join(world.folder, name)
    for (const each of ['p', 'r', 'w']) mkdirSync(join(folder, each), { recursive: true })
    const postgresUrl = world.plugs.postgres!.url
    const postgresFolder = /host=([^&]+)/.exec(postgresUrl)![1]!
    const postgres = await wire(
      { path: join(postgresFolder, '.s.PGSQL.5432') },
      { path: join(folder, 'p', '.s.PGSQL.5432') },
    )
    const redis = await wire(
      { path: new URL(world.plugs.redis.url).pathname },
      { path: join(folder, 'r', 'redis.sock') },
    )
    const env = {
      DATABASE_URL: postgresUrl.replace(postgresFolder, join(folder, 'p')),
      REDIS_URL: `unix://${join(folder, 'r', 'redis.sock')}`,
      NODE_OPTIONS: `--import=${preload}`,
      CHAOS_WIRES: join(folder, 'w'),
      CHAOS_CLOCK: join(folder, 'clock'),
    }
    return { folder, wires: { postgres, redis }, env }
  }

  async function addInstance(kind: Instance['kind'], index: number): Promise<Instance> {
    const name = `${kind}-${index}`
    const { folder, wires, env } = await wiresOf(name)
    const instance: Instance = {
      name,
      kind,
      process: await start(kind, env),
      wires,
      toWorkers: new Map(),
      setClock: (ms) => writeFileSync(join(folder, 'clock'), String(ms)),
      usual: { memory: 0, descriptors: 0 },
      isBeingEnded: false,
    }
    envs.set(instance, { env, folder })
    instances.push(instance)
    return instance
  }
  const envs = new Map<Instance, { env: Record<string, string>; folder: string }>()

  async function start(kind: Instance['kind'], env: Record<string, string>, harm = async (_: Process) => {}) {
    const starting = kind === 'api' ? world.startApi(env) : world.startWorker(env)
    // Processes are listed before they are ready.
    const harming = harm((kind === 'api' ? world.apis : world.workers).at(-1)!)
    const [process] = await Promise.all([starting, harming])
    processes.push(process)
    return process
  }

  async function connectApis(worker: Instance) {
    const host = '127.0.0.1'
    const { port } = new URL(worker.process.callsUrl)
    for (const api of instances.filter(({ kind }) => kind === 'api')) {
      api.toWorkers.get(worker)?.close()
      const relay = await wire({ host, port: Number(port) }, { host, port: 0 })
      writeFileSync(join(envs.get(api)!.folder, 'w', port), String(relay.port))
      api.toWorkers.set(worker, relay)
    }
  }

  /** Removes the relays to an exited worker, because its port may be reused. */
  function forget({ kind, process }: Instance) {
    if (kind === 'api') return
    const { port } = new URL(process.callsUrl)
    for (const { folder } of envs.values()) rmSync(join(folder, 'w', port), { force: true })
  }

  function updateWorld() {
    const ofKind = (kind: Instance['kind']) =>
      instances.filter((instance) => instance.kind === kind).map((instance) => instance.process)
    world.apis.splice(0, world.apis.length, ...ofKind('api'))
    world.workers.splice(0, world.workers.length, ...ofKind('worker'))
  }

  async function settle(instance: Instance) {
    if (instance.kind === 'worker') await connectApis(instance)
    instance.usual = { memory: memoryOf(instance.process), descriptors: descriptorsOf(instance.process) }
    updateWorld()
  }

  for (let index = 0; index < apiCount; index++) await addInstance('api', index)
  await Promise.all(Array.from({ length: workerCount }, (_, index) => addInstance('worker', index)))
  await Promise.all(instances.map(settle))

  await installFullTriggers(world.db)
  // Rows for migrations of large tables.
  await fillTables(world.db, (await world.account()).email, pastRows)
  const redisPair = await openPair(world)
  undo.defer(async () => {
    await redisPair.end()
    await redisPair.address.close()
  })
  const rounds = new Map(instances.map((instance) => [instance, 0]))
  const driver = await openWorldDriver(withAdminAccess(world))
  undo.defer(() => driver.close())
  const rest = undo.move()
  return {
    world,
    driver,
    instances,
    processes,
    async replace(instance, harm) {
      await instance.process.ended
      forget(instance)
      instance.setClock(0)
      instance.process = await start(instance.kind, envs.get(instance)!.env, harm)
      await settle(instance)
      instance.isBeingEnded = false
    },
    redisPair,
    leadRedis(to) {
      const path = new URL(to.plug.url).pathname
      for (const { wires } of instances) wires.redis.lead({ path })
    },
    postgresPair,
    leadPostgres({ path }) {
      for (const { wires } of instances) wires.postgres.lead({ path })
    },
    withOldestKeys() {
      const oldest = Math.min(...rounds.values())
      return instances.filter((instance) => rounds.get(instance) === oldest)
    },
    rotateKeys(instance) {
      const round = rounds.get(instance)! + 1
      rounds.set(instance, round)
      Object.assign(envs.get(instance)!.env, keysAt(round))
    },
    [Symbol.asyncDispose]: () => rest.disposeAsync(),
  }
}

/**
 * Returns the world with the administrator's access, because faults revoke the workers' credential and
 * permissions.
 */
const withAdminAccess = (world: World): World => ({
  ...world,
  settings: {
    ...world.settings,
    kubernetes: { ...world.settings.kubernetes, kubeconfig: adminKubeconfig },
  },
})

/**
 * Rotates keys as docs/hosting.md describes: a new key is appended in all processes before it becomes the first.
 * No key is removed, because clients' requests may still use it.
 */
function keysAt(round: number): { JWT_SECRET: string; SECRETS_KEY: string } {
  const first = Math.floor(round / 2)
  const numbers = Array.from({ length: first + 1 }, (_, index) => first - index)
  const keys = [...numbers, ...(round % 2 === 1 ? [first + 1] : [])]
    .map((number) => `key-${number}-`.repeat(6))
    .join()
  return { JWT_SECRET: keys, SECRETS_KEY: keys }
}
