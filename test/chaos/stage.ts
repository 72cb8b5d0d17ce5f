/** The world of a run: 2 APIs and 3 workers, each with wires of its own to everything that it talks to. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Driver } from '../../workers/drivers/driver.ts'
import { adminKubeconfig } from '../support/cluster.ts'
import { openWorldDriver } from '../support/drivers.ts'
import { openPair, type Pair, type Server } from '../support/failover.ts'
import { layRefusal } from '../support/full-database.ts'
import { type Process, startWorld, type World } from '../support/index.ts'
import { memoryOf } from '../support/memory.ts'
import { fillTables } from '../support/migrations.ts'
import { descriptorsOf } from '../support/raw.ts'
import { openRelay, type Relay } from '../support/relay.ts'
import { openPostgresPair, type PostgresPair, type PostgresServer } from '../support/standby.ts'
import type { Options } from './options.ts'

/** A place for a process; who is in it changes when one is killed. */
export interface Seat {
  name: string
  kind: 'api' | 'worker'
  process: Process
  wires: { postgres: Relay; redis: Relay }
  /** Of an API, to each worker. */
  toWorkers: Map<Seat, Relay>
  /** Milliseconds that its clock is moved by. */
  setClock(ms: number): void
  /** Bytes and open files, once it had settled. */
  usual: { memory: number; descriptors: number }
  /** Whether a fault of ours ended its process, or is about to. */
  isBeingEnded: boolean
}

export interface Stage extends AsyncDisposable {
  world: World
  driver: Driver
  seats: Seat[]
  /** All that there were. */
  processes: Process[]
  /** Puts a new process in place of one that has ended. @param harm done to it while it starts */
  replace(seat: Seat, harm?: (process: Process) => Promise<void>): Promise<void>
  /** The world's Redis, and a replica of it. */
  redisPair: Pair
  /** New connections to Redis lead there. */
  leadRedis(to: Server): void
  /** The world's PostgreSQL, and a standby of it. */
  postgresPair: PostgresPair
  /** New connections to PostgreSQL lead there. */
  leadPostgres(to: PostgresServer): void
  /** Those whose keys are older than others', or all: a round begins when all have the same. */
  behindWithKeys(): Seat[]
  /** The next keys, which it gets with its next process. */
  giveKeys(seat: Seat): void
}

export const apiCount = 2
export const workerCount = 3
/** Sandboxes that an account may have at once: fewer than its clients would like. */
export const cap = 3

/** What has ended before. */
const pastRows = 50_000

const preload = pathToFileURL(join(import.meta.dirname, 'preload.mjs')).href

export async function openStage({ driver: driverName }: Options): Promise<Stage> {
  await using undo = new AsyncDisposableStack()
  const relays: Relay[] = []
  // After the world: its processes end in order.
  undo.defer(() => {
    for (const relay of relays) relay.close()
  })
  const world = undo.use(
    await startWorld({
      driver: driverName,
      apis: 0,
      workers: 0,
      ownPostgres: true,
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
  // Nothing is connected yet.
  const postgresPair = await openPostgresPair(world)
  undo.defer(() => postgresPair.end())
  const seats: Seat[] = []
  const processes: Process[] = []

  const wire = async (...places: Parameters<typeof openRelay>) => {
    const relay = await openRelay(...places)
    relays.push(relay)
    return relay
  }

  /** The socket of a service, as it was and over a wire of one seat. */
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

  async function addSeat(kind: Seat['kind'], index: number): Promise<Seat> {
    const name = `${kind}-${index}`
    const { folder, wires, env } = await wiresOf(name)
    const seat: Seat = {
      name,
      kind,
      process: await start(kind, env),
      wires,
      toWorkers: new Map(),
      setClock: (ms) => writeFileSync(join(folder, 'clock'), String(ms)),
      usual: { memory: 0, descriptors: 0 },
      isBeingEnded: false,
    }
    envs.set(seat, { env, folder })
    seats.push(seat)
    return seat
  }
  const envs = new Map<Seat, { env: Record<string, string>; folder: string }>()

  async function start(kind: Seat['kind'], env: Record<string, string>, harm = async (_: Process) => {}) {
    const starting = kind === 'api' ? world.startApi(env) : world.startWorker(env)
    // It is there before it is ready.
    const harming = harm((kind === 'api' ? world.apis : world.workers).at(-1)!)
    const [process] = await Promise.all([starting, harming])
    processes.push(process)
    return process
  }

  /** Between each API and a worker that is new. */
  async function lay(worker: Seat) {
    const host = '127.0.0.1'
    const { port } = new URL(worker.process.callsUrl)
    for (const api of seats.filter(({ kind }) => kind === 'api')) {
      api.toWorkers.get(worker)?.close()
      const relay = await wire({ host, port: Number(port) }, { host, port: 0 })
      writeFileSync(join(envs.get(api)!.folder, 'w', port), String(relay.port))
      api.toWorkers.set(worker, relay)
    }
  }

  /** Its port may soon be somebody else's. */
  function forget({ kind, process }: Seat) {
    if (kind === 'api') return
    const { port } = new URL(process.callsUrl)
    for (const { folder } of envs.values()) rmSync(join(folder, 'w', port), { force: true })
  }

  /** What a world knows of are those that are there, in the order of their seats. */
  function announce() {
    const ofKind = (kind: Seat['kind']) =>
      seats.filter((seat) => seat.kind === kind).map((seat) => seat.process)
    world.apis.splice(0, world.apis.length, ...ofKind('api'))
    world.workers.splice(0, world.workers.length, ...ofKind('worker'))
  }

  async function settle(seat: Seat) {
    if (seat.kind === 'worker') await lay(seat)
    seat.usual = { memory: memoryOf(seat.process), descriptors: descriptorsOf(seat.process) }
    announce()
  }

  for (let index = 0; index < apiCount; index++) await addSeat('api', index)
  await Promise.all(Array.from({ length: workerCount }, (_, index) => addSeat('worker', index)))
  await Promise.all(seats.map(settle))

  await layRefusal(world.db)
  // Some of the past, for a migration to go through.
  await fillTables(world.db, (await world.account()).email, pastRows)
  const redisPair = await openPair(world)
  undo.defer(async () => {
    await redisPair.end()
    await redisPair.address.close()
  })
  /** The round of keys that each has. */
  const rounds = new Map(seats.map((seat) => [seat, 0]))
  const driver = await openWorldDriver(pastFaults(world))
  undo.defer(() => driver.close())
  const rest = undo.move()
  return {
    world,
    driver,
    seats,
    processes,
    async replace(seat, harm) {
      await seat.process.ended
      forget(seat)
      seat.setClock(0)
      seat.process = await start(seat.kind, envs.get(seat)!.env, harm)
      await settle(seat)
      seat.isBeingEnded = false
    },
    redisPair,
    leadRedis(to) {
      const path = new URL(to.plug.url).pathname
      for (const { wires } of seats) wires.redis.lead({ path })
    },
    postgresPair,
    leadPostgres({ path }) {
      for (const { wires } of seats) wires.postgres.lead({ path })
    },
    behindWithKeys() {
      const least = Math.min(...rounds.values())
      return seats.filter((seat) => rounds.get(seat) === least)
    },
    giveKeys(seat) {
      const round = rounds.get(seat)! + 1
      rounds.set(seat, round)
      Object.assign(envs.get(seat)!.env, keysAt(round))
    },
    [Symbol.asyncDispose]: () => rest.disposeAsync(),
  }
}

/** As an administrator: the workers' credential is replaced, and their role loses rights. */
const pastFaults = (world: World): World => ({
  ...world,
  settings: {
    ...world.settings,
    kubernetes: { ...world.settings.kubernetes, kubeconfig: adminKubeconfig },
  },
})

/**
 * The rounds of docs/hosting.md, again and again: a key is appended everywhere, then it is the first everywhere. None is
 * taken away, since what the clients do may need it.
 */
function keysAt(round: number): { JWT_SECRET: string; SECRETS_KEY: string } {
  const first = Math.floor(round / 2)
  const numbers = Array.from({ length: first + 1 }, (_, index) => first - index)
  const keys = [...numbers, ...(round % 2 === 1 ? [first + 1] : [])]
    .map((number) => `key-${number}-`.repeat(6))
    .join()
  return { JWT_SECRET: keys, SECRETS_KEY: keys }
}
