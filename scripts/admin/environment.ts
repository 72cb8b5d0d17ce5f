/** The database and keys for `npm run admin`, from the environment or from `npm start` in this folder. */
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

/**
 * DATABASE_URL of the environment or of .env, as for `npm start`; else its embedded one.
 * @throws with a message for the terminal when there is neither
 */
export function findDatabase(): string {
  readDotEnv()
  if (process.env.DATABASE_URL) return process.env.DATABASE_URL
  const sockets = socketPath(join(root, '.data'))
  if (existsSync(join(sockets, '.s.PGSQL.5432'))) return postgresUrl(sockets)
  throw new Error('No database: set DATABASE_URL, or run npm start in this folder.')
}

/** PASSWORD_SCRYPT_LOG_N of the environment or of .env. @throws with a message for the terminal when it is wrong */
export function findPasswordCost(): number {
  readDotEnv()
  return readPasswordCost(process.env)
}

/**
 * REDIS_URL of the environment or of .env, as for `npm start`; else its embedded one.
 * @throws with a message for the terminal when there is neither
 */
export function findRedis(): string {
  readDotEnv()
  if (process.env.REDIS_URL) return process.env.REDIS_URL
  const sockets = socketPath(join(root, '.data'))
  if (existsSync(redisSocket(sockets))) return redisUrl(sockets)
  throw new Error('No Redis: set REDIS_URL, or run npm start in this folder.')
}

/**
 * The internal port of the process in this container.
 * @throws with a message for the terminal when a setting is wrong
 */
export function findInternalServer(): string {
  readDotEnv()
  const { host, port } = readInternalServer(process.env)
  const address = { '0.0.0.0': '127.0.0.1', '::': '::1' }[host] ?? host
  return `http://${isIPv6(address) ? `[${address}]` : address}:${port}`
}

/**
 * Generates the keys of a new installation, each of 256 random bits.
 * @returns them by name, and as lines for an environment
 */
export function makeKeys(): Report {
  const [JWT_SECRET, SECRETS_KEY] = [1, 2].map(() => randomBytes(32).toString('base64url')) as [
    string,
    string,
  ]
  return announceKeys({ JWT_SECRET, SECRETS_KEY, ...keysOfApi({ SECRETS_KEY }) })
}

/**
 * The keys for API processes, which replace SECRETS_KEY: derived from SECRETS_KEY of the environment or of .env, else
 * from that of `npm start` in this folder.
 * @returns them by name, and as lines for an environment
 * @throws with a message for the terminal when there is neither
 */
export function showPublicKey(): Report {
  readDotEnv()
  const kept = secretFile('SECRETS_KEY', join(root, '.data'))
  const SECRETS_KEY = process.env.SECRETS_KEY || (existsSync(kept) ? readFileSync(kept, 'utf8').trim() : '')
  if (SECRETS_KEY === '') throw new Error('No key: set SECRETS_KEY, or run npm start in this folder.')
  return announceKeys(keysOfApi({ SECRETS_KEY, RPC_KEY: process.env.RPC_KEY || undefined }))
}

const announceKeys = (keys: Record<string, string>): Report => ({
  value: keys,
  text: Object.entries(keys)
    .map(([name, value]) => `${name}=${value}`)
    .join('\n'),
})
