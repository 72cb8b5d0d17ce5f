/** A Redis primary and its replica behind one address, like a virtual IP that follows the primary. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { startWatchdog } from '../../scripts/supervisor/watchdog.ts'
import { eventually } from './eventually.ts'
import { openRelay, type Relay } from './relay.ts'
import { type Plug, startRedis } from './services.ts'
import type { World } from './world.ts'

export interface Server {
  plug: Plug
  promote(): Promise<void>
  /** Makes this server a replica, and waits until it is in sync with the primary. */
  follow(primary: Server): Promise<void>
  port: number
  /** Connections through the address. */
  connections(): number
}

export interface Pair {
  first: Server
  second: Server
  address: Relay
  url: string
  lead(to: Server): void
  /** Makes the first server the primary again, and stops the second. */
  end(): Promise<void>
}

export async function openPair({ plugs, folder }: World): Promise<Pair> {
  const watchdog = startWatchdog()
  const ownFolder = join(folder, 'second')
  mkdirSync(ownFolder)
  const opened = new Map<Server, number>()
  const controls: Redis[] = []
  const relays: Relay[] = []

  async function open(plug: Plug): Promise<Server> {
    const path = new URL(plug.url).pathname
    // Carries only the test's own commands.
    const control = new Redis({ path, maxRetriesPerRequest: null, replyMapping: 'legacy' })
    control.on('error', () => {})
    controls.push(control)
    await control.config('SET', 'repl-diskless-sync-delay', '0')
    const forReplicas = await openRelay({ path }, { host: '127.0.0.1', port: 0 })
    const server: Server = {
      plug,
      port: forReplicas.port,
      connections: () => opened.get(server) ?? 0,
      promote: async () => void (await control.replicaof('NO', 'ONE')),
      async follow(primary) {
        await control.replicaof('127.0.0.1', primary.port)
        await eventually(
          async () => (await control.info('replication')).includes('master_link_status:up'),
          10_000,
        )
      },
    }
    relays.push(forReplicas)
    return server
  }
  const first = await open(plugs.redis)
  const second = await open(await startRedis(ownFolder, watchdog))
  await second.follow(first)

  let leadsTo = first
  const placeOf = (server: Server) => ({ path: new URL(server.plug.url).pathname })
  const address = await openRelay(
    placeOf(first),
    { host: '127.0.0.1', port: 0 },
    {
      opened(_near, far) {
        const server = leadsTo
        const count = (by: number) => opened.set(server, server.connections() + by)
        count(1)
        far.on('close', () => count(-1))
      },
    },
  )
  const lead = (to: Server) => {
    leadsTo = to
    address.lead(placeOf(to))
  }
  return {
    first,
    second,
    address,
    url: `redis://127.0.0.1:${address.port}`,
    lead,
    async end() {
      await first.plug.start()
      await first.promote()
      lead(first)
      for (const control of controls) control.disconnect()
      await second.plug.stop()
      for (const relay of relays) await relay.close()
      watchdog.dismiss()
    },
  }
}
