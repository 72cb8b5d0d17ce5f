/** A PostgreSQL primary and a hot standby that can switch roles. */
import { appendFileSync, chmodSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startWatchdog } from '../../scripts/supervisor/watchdog.ts'
import { type Database, openDatabase } from '../../shared/data/database.ts'
import { waitFor } from './eventually.ts'
import { type Plug, startPostgres } from './services.ts'
import type { World } from './world.ts'

export interface PostgresServer {
  plug: Plug
  path: string
}

export interface PostgresPair {
  /** The world's PostgreSQL, which starts as the primary. */
  first: PostgresServer
  second: PostgresServer
  /**
   * Promotes the standby. The old primary shuts down cleanly, so no commit is lost, and restarts as a standby.
   * @param promoted called before the old primary restarts
   */
  switchTo(server: PostgresServer, promoted?: () => void): Promise<void>
  end(): Promise<void>
}

/** Time for the standby to catch up on a busy machine. */
const followMs = 60_000
const promoteMs = 30_000

export async function openPostgresPair({ plugs, folder }: World): Promise<PostgresPair> {
  const watchdog = startWatchdog()
  const ownFolder = join(folder, 'standby')
  mkdirSync(ownFolder)
  const first = serverOf(plugs.postgres!, folder)
  await first.plug.stop()
  cpSync(join(folder, 'postgres'), join(ownFolder, 'postgres'), { recursive: true })
  // PostgreSQL requires these permissions.
  chmodSync(join(ownFolder, 'postgres'), 0o700)
  await first.plug.start()
  follow(ownFolder, first)
  const second = serverOf(await startPostgres(ownFolder, watchdog), ownFolder)
  const folders = new Map([
    [first, folder],
    [second, ownFolder],
  ])
  const other = (server: PostgresServer) => (server === first ? second : first)

  return {
    first,
    second,
    async switchTo(server, promoted = () => {}) {
      const old = other(server)
      // On a clean shutdown, a primary first sends everything to its streaming standbys.
      await waitFor(() => ask(old, hasFollower), followMs)
      await old.plug.stop()
      promote(folders.get(server)!)
      // This connection succeeds only on a primary.
      await waitFor(() => ask(server, (db) => db.query('select 1')), promoteMs)
      promoted()
      follow(folders.get(old)!, server)
      await old.plug.start()
    },
    async end() {
      await second.plug.stop()
      watchdog.dismiss()
    },
  }
}

const serverOf = (plug: Plug, folder: string): PostgresServer => ({
  plug,
  path: join(folder, 'p', '.s.PGSQL.5432'),
})

const hasFollower = async (db: Database) =>
  (await db.query("select from pg_stat_replication where state = 'streaming'")).length > 0

async function ask<T>({ plug }: PostgresServer, work: (db: Database) => Promise<T>): Promise<T> {
  const db = openDatabase(plug.url, { connections: 1 })
  try {
    return await work(db)
  } finally {
    await db.close()
  }
}

/** Promotes a standby, as `pg_ctl promote` does. */
function promote(folder: string): void {
  const directory = join(folder, 'postgres')
  writeFileSync(join(directory, 'promote'), '')
  const [pid] = readFileSync(join(directory, 'postmaster.pid'), 'utf8').split('\n')
  process.kill(Number(pid), 'SIGUSR1')
}

/** Makes a server follow the other one from its next start. */
function follow(folder: string, { path }: PostgresServer): void {
  const directory = join(folder, 'postgres')
  const primary = `host=${join(path, '..')} user=sandlot`
  // The last value of a setting takes effect.
  const settings = [`primary_conninfo = '${primary}'`, "wal_retrieve_retry_interval = '200ms'"]
  appendFileSync(join(directory, 'postgresql.auto.conf'), `\n${settings.join('\n')}\n`)
  writeFileSync(join(directory, 'standby.signal'), '')
}
