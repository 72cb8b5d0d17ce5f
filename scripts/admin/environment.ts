import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { isIPv6 } from 'node:net'
import { join } from 'node:path'
import type { Report } from '../../api/admin/report.ts'
import { keysOfApi } from '../../shared/platform/keys.ts'
import { readInternalServer, readPasswordCost } from '../../shared/platform/settings.ts'
import { readDotEnv, root } from '../root.mjs'
import { postgresUrl } from '../services/postgres.ts'
import { redisSocket, redisUrl } from '../services/redis.ts'
import { socketPath } from '../supervisor/data-folder.ts'
import { secretFile } from '../supervisor/stack-settings.ts'

const data = join(root, '.data')

/**
 * Returns DATABASE_URL from the environment or .env, or the URL of the PostgreSQL that `npm start` runs.
 * @throws a user-facing error if the variable is not set and there is no such server
 */
export function findDatabase(): string {
  readDotEnv()
  if (process.env.DATABASE_URL) return process.env.DATABASE_URL
  const sockets = socketPath(data)
  if (existsSync(join(sockets, '.s.PGSQL.5432'))) return postgresUrl(sockets)
  throw new Error('PostgreSQL was not found. Set DATABASE_URL, or run npm start in this folder.')
}

export function findPasswordCost(): number {
  readDotEnv()
  return readPasswordCost(process.env)
}

/**
 * Returns REDIS_URL from the environment or .env, or the URL of the Redis that `npm start` runs.
 * @throws a user-facing error if the variable is not set and there is no such server
 */
export function findRedis(): string {
  readDotEnv()
  if (process.env.REDIS_URL) return process.env.REDIS_URL
  const sockets = socketPath(data)
  if (existsSync(redisSocket(sockets))) return redisUrl(sockets)
  throw new Error('Redis was not found. Set REDIS_URL, or run npm start in this folder.')
}

/** Returns the base URL of the server for health checks and metrics (INTERNAL_PORT) on this machine. */
export function findInternalServer(): string {
  readDotEnv()
  const { host, port } = readInternalServer(process.env)
  const address = { '0.0.0.0': '127.0.0.1', '::': '::1' }[host] ?? host
  return `http://${isIPv6(address) ? `[${address}]` : address}:${port}`
}

export function makeKeys(): Report {
  const JWT_SECRET = randomBytes(32).toString('base64url')
  const SECRETS_KEY = randomBytes(32).toString('base64url')
  return announceKeys({ JWT_SECRET, SECRETS_KEY, ...keysOfApi({ SECRETS_KEY }) })
}

/**
 * Returns SECRETS_PUBLIC_KEY and RPC_KEY, which API processes use instead of SECRETS_KEY. Derives them from
 * SECRETS_KEY, except for an RPC_KEY that is already set. `npm start` may have saved SECRETS_KEY in a file.
 * @throws a user-facing error if SECRETS_KEY is neither set nor saved
 */
export function showPublicKey(): Report {
  readDotEnv()
  const kept = secretFile('SECRETS_KEY', data)
  const SECRETS_KEY = process.env.SECRETS_KEY || (existsSync(kept) ? readFileSync(kept, 'utf8').trim() : '')
  if (SECRETS_KEY === '')
    throw new Error('SECRETS_KEY was not found. Set it, or run npm start in this folder.')
  return announceKeys(keysOfApi({ SECRETS_KEY, RPC_KEY: process.env.RPC_KEY || undefined }))
}

const announceKeys = (keys: Record<string, string>): Report => ({
  value: keys,
  text: Object.entries(keys)
    .map(([name, value]) => `${name}=${value}`)
    .join('\n'),
})
