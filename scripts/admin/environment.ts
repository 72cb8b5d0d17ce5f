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
 * Returns DATABASE_URL from the environment or .env, or the URL of the server that `npm start` runs here.
 * @throws a user-facing error if neither exists
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
 * Returns REDIS_URL from the environment or .env, or the URL of the server that `npm start` runs here.
 * @throws a user-facing error if neither exists
 */
export function findRedis(): string {
  readDotEnv()
  if (process.env.REDIS_URL) return process.env.REDIS_URL
  const sockets = socketPath(data)
  if (existsSync(redisSocket(sockets))) return redisUrl(sockets)
  throw new Error('Redis was not found. Set REDIS_URL, or run npm start in this folder.')
}

/** Returns the base URL of the internal server in this container. */
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
 * Derives SECRETS_PUBLIC_KEY and, unless it is set, RPC_KEY for API processes, which must not have
 * SECRETS_KEY. If SECRETS_KEY is not set, uses the one that `npm start` generated in this folder.
 * @throws a user-facing error if there is no SECRETS_KEY
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
