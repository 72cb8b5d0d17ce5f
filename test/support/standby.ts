/** A PostgreSQL and a standby of it that stands hot: it answers what only reads. They can change places. */
import { appendFileSync, chmodSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startWatchdog } from '../../scripts/supervisor/watchdog.ts'
import { type Database, openDatabase } from '../../shared/data/database.ts'
import { waitFor } from './eventually.ts'
import { ownPostgres, type Plug } from './services.ts'
import type { World } from './world.ts'

export interface PostgresServer {
  plug: Plug
  /** Its socket. */
  path: string
}

export interface PostgresPair {
  /** The world's own, which is the primary until a test says otherwise. */
  first: PostgresServer
  second: PostgresServer
  /**
   * Makes the standby the primary. The old one is stopped in order, so nothing that it has told is lost, and comes back
   * as the standby: it still answers, and only reads.
   * @param promoted awaited before the old one comes back
   */
  switchTo(server: PostgresServer, promoted?: () => void): Promise<void>
  /** Ends the second. */
  end(): Promise<void>
}

/** Until the standby has all, on a busy machine. */
const followMs = 60_000
const promoteMs = 30_000

export async function openPostgresPair({ plugs, folder }: World): Promise<PostgresPair> {
  const watchdog = startWatchdog()
  const ownFolder = join(folder, 'standby')
  mkdirSync(ownFolder)
  const first = serverOf(plugs.postgres!, folder)
  await first.plug.stop()
  cpSync(join(folder, 'postgres'), join(ownFolder, 'postgres'), { recursive: true })
  // Which PostgreSQL asks for.
  chmodSync(join(ownFolder, 'postgres'), 0o700)
  await first.plug.start()
  follow(ownFolder, first)
  const second = serverOf(await ownPostgres(ownFolder, watchdog), ownFolder)
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
      // A primary that stops in order sends everything to those who follow.
      await waitFor(() => ask(old, hasFollower), followMs)
      await old.plug.stop()
      promote(folders.get(server)!)
      // Nothing of ours talks to a standby.
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

/** Past every wire. */
async function ask<T>({ plug }: PostgresServer, work: (db: Database) => Promise<T>): Promise<T> {
  const db = openDatabase(plug.url, { connections: 1 })
  try {
    return await work(db)
  } finally {
    await db.close()
  }
}

/** As `pg_ctl promote` does. */
function promote(folder: string): void {
  const directory = join(folder, 'postgres')
  writeFileSync(join(directory, 'promote'), '')
  const [pid] = readFileSync(join(directory, 'postmaster.pid'), 'utf8').split('\n')
  process.kill(Number(pid), 'SIGUSR1')
}

/** From its next start on. */
function follow(folder: string, { path }: PostgresServer): void {
  const directory = join(folder, 'postgres')
  const primary = `host=${join(path, '..')} user=sandlot`
  // The last line of a name counts.
  const settings = [`primary_conninfo = '${primary}'`, "wal_retrieve_retry_interval = '200ms'"]
  appendFileSync(join(directory, 'postgresql.auto.conf'), `\n${settings.join('\n')}\n`)
  writeFileSync(join(directory, 'standby.signal'), '')
}
