import { mkdirSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { type DebianProgram, findDebianProgram, installCommand } from './debian-package.ts'
import { findProgram } from './find-program.ts'
import { run } from './run.ts'
import type { Service } from './service.ts'

export interface RedisOptions {
  /** Data folder, created on first use. Its parent folder must already exist. */
  directory: string
  /** Existing folder for `redis.sock`, whose path is limited to 107 bytes. */
  socketDir: string
  log: string
}

/** Oldest supported major version of Redis. */
const oldest = 7

export const redisSocket = (socketDir: string) => join(socketDir, 'redis.sock')
export const redisUrl = (socketDir: string) => `unix://${encodeURI(redisSocket(socketDir))}`

/** Result of the search for Redis. It is cached, because each search can start three processes. */
let found: Promise<DebianProgram> | undefined

/**
 * Finds Redis on this machine or in a Debian package, and returns how to run it on a socket in a private
 * folder. The caller must lock the folder, because a second server could otherwise take over the socket.
 * @throws a user-facing error with the install command if Redis cannot be found
 */
export async function prepareRedis(options: RedisOptions, report: (line: string) => void): Promise<Service> {
  found ??= findServer(report)
  const server = await found
  mkdirSync(options.directory, { recursive: true, mode: 0o700 })
  const socket = redisSocket(options.socketDir)
  // A second server would silently take over the socket and write the same files.
  if ((await ask(socket, 'PING')) !== undefined) {
    throw new Error(`A Redis server from a previous run is still listening on ${socket}. Stop it first.`)
  }
  const settings = {
    port: '0',
    unixsocket: socket,
    unixsocketperm: '700',
    dir: options.directory,
    appendonly: 'yes',
    appendfsync: 'everysec',
    save: '',
    'maxmemory-policy': 'noeviction',
    // Makes BullMQ's delayed jobs only 12 ms late instead of 100 ms.
    hz: '100',
  }
  return {
    name: 'redis',
    command: [server.path, ...Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value])],
    environment: { ...process.env, ...server.environment },
    log: options.log,
    stopSignal: 'SIGTERM',
    isReady: async () => (await ask(socket, 'PING')) === '+PONG',
  }
}

async function findServer(report: (line: string) => void): Promise<DebianProgram> {
  const installed = findProgram('redis-server', 'valkey-server')
  const version = installed === undefined ? 0 : await majorVersion(installed)
  if (installed !== undefined && version >= oldest) return { path: installed, environment: {} }
  // Debian's redis-tools also contains the server, because the server and all tools are one program.
  const unpacked = await findDebianProgram({
    package: 'redis-tools',
    program: 'usr/bin/redis-check-rdb',
    as: 'redis-server',
    report,
  })
  if (unpacked !== undefined && (await majorVersion(unpacked.path, unpacked.environment)) >= oldest)
    return unpacked
  throw new Error(
    `Sandlot needs Redis ${oldest} or newer, or Valkey${installed ? ` (${installed} is version ${version})` : ''}. Do one of these:\n` +
      `  - install it: ${installCommand({ debian: 'redis-server', fedora: 'valkey', alpine: 'redis', arch: 'valkey', brew: 'redis' })}\n` +
      '  - use an existing server: REDIS_URL=redis://localhost:6379 npm start',
  )
}

/**
 * Returns the major version of a Redis server, or 0 on failure.
 * Both Redis and Valkey print `… server v=7.0.15 …`.
 */
async function majorVersion(path: string, environment: Record<string, string> = {}): Promise<number> {
  const text = await run([path, '--version'], { environment: { ...process.env, ...environment } }).catch(
    () => '',
  )
  return Number(/\bv=(\d+)\./.exec(text)?.[1] ?? 0)
}

/** Sends a Redis command. Returns the first line of the response, or undefined if none arrives within 1 s. */
function ask(socket: string, command: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const connection = connect(socket)
    connection.setTimeout(1000, () => connection.destroy())
    connection.setEncoding('utf8')
    connection.once('connect', () => connection.write(`${command}\r\n`))
    connection.once('data', (text: string) => {
      resolve(text.split('\r\n')[0])
      connection.destroy()
    })
    connection.once('error', () => {})
    connection.once('close', () => resolve(undefined))
  })
}
