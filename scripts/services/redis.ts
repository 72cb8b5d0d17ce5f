/**
 * Prepares a Redis server for one clone. The server is reachable only through a socket in a private folder. The caller
 * must lock that folder, because otherwise a second server could take over the socket.
 */
import { mkdirSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { type DebianProgram, findDebianProgram, installCommand } from './debian-package.ts'
import { findProgram } from './find-program.ts'
import { run } from './run.ts'
import type { Service } from './service.ts'

export interface RedisOptions {
  /** Data folder. It is created on first use, but its parent must exist. */
  directory: string
  /** Existing folder for `redis.sock`. The full path of the socket can be at most 107 bytes long. */
  socketDir: string
  log: string
}

const oldest = 7

export const redisSocket = (socketDir: string) => join(socketDir, 'redis.sock')
export const redisUrl = (socketDir: string) => `unix://${encodeURI(redisSocket(socketDir))}`

/** Result of the search for a server. It is cached, because the search starts three processes. */
let found: Promise<DebianProgram> | undefined

/**
 * Finds an installed Redis server, or gets one from a Debian package. Returns how to run it.
 * @throws a user-facing error if there is no server; the message includes the command that installs one
 */
export async function prepareRedis(options: RedisOptions, report: (line: string) => void): Promise<Service> {
  found ??= findServer(report)
  const server = await found
  mkdirSync(options.directory, { recursive: true, mode: 0o700 })
  const socket = redisSocket(options.socketDir)
  // A second server would take over the socket without an error, and both would write the same files.
  if ((await ask(socket, 'PING')) !== undefined) {
    throw new Error(`A Redis server from a previous run still listens on ${socket}. Stop it first.`)
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
    // At this frequency, BullMQ's delayed jobs are 12 ms late instead of 100 ms.
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
  // Debian's redis-tools also contains the server: all its tools are one program, whose name selects its function.
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

/** Returns the major version of a Redis or Valkey program, or 0 if it fails. Both print `… server v=7.0.15 …`. */
async function majorVersion(path: string, environment: Record<string, string> = {}): Promise<number> {
  const text = await run([path, '--version'], { environment: { ...process.env, ...environment } }).catch(
    () => '',
  )
  return Number(/\bv=(\d+)\./.exec(text)?.[1] ?? 0)
}

/** Sends a command to a Redis socket. Returns the first line of the reply, or undefined if there is none within 1 s. */
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
