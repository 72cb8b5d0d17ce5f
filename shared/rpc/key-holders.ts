/**
 * Publishes fingerprints of each process's keys.
 * Operators who rotate keys compare the fingerprints with `npm run admin -- keys`.
 */
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Redis } from 'ioredis'
import * as z from 'zod'
import { parseJson } from '../contract/json.ts'
import { withTimeout } from '../lib/timeout.ts'
import type { Context } from '../platform/context.ts'
import { deriveKey, publicKeyOf } from '../platform/seal.ts'
import type { Role, Settings } from '../platform/settings.ts'

/** Keys whose fingerprints are published. For SECRETS_KEY, the fingerprint of its public key is published. */
export const keyNames = ['JWT_SECRET', 'SECRETS_KEY', 'RPC_KEY'] as const
export type KeyName = (typeof keyNames)[number]

const fingerprint = /^[0-9a-f]{6}$/
const Fingerprints = z.array(z.string().regex(fingerprint)).max(100)
const KeyHolder = z.object({
  kind: z.enum(['api', 'worker']),
  place: z.string().regex(/^[\w.-]{1,255}:\d{1,10}$/),
  /** Fingerprints in the order of the keys in the setting. The first key signs and seals. */
  keys: z.object({ JWT_SECRET: Fingerprints, SECRETS_KEY: Fingerprints, RPC_KEY: Fingerprints }),
})
export type KeyHolder = z.output<typeof KeyHolder>

const prefix = 'sandlot:keys:'
const publishEveryMs = 2_000
const expireMs = 10_000
const withdrawMs = 500

export function announceKeys({ redis, settings }: Pick<Context, 'redis' | 'settings'>, kind: Role) {
  const key = prefix + randomUUID()
  const place = `${hostname()}:${process.pid}`
  const text = JSON.stringify({ kind, place, keys: fingerprintsOf(settings, kind) } satisfies KeyHolder)
  const publish = () => void redis.set(key, text, 'PX', expireMs).catch(() => {})
  publish()
  redis.on('ready', publish)
  const timer = setInterval(publish, publishEveryMs).unref()
  return async () => {
    clearInterval(timer)
    redis.off('ready', publish)
    await withTimeout(withdrawMs, redis.del(key)).catch(() => {})
  }
}

/**
 * Returns the processes seen in the last ten seconds, with the fingerprints of their keys. Fingerprints grant
 * no access, so they are not signed.
 */
export async function listKeyHolders(redis: Redis): Promise<KeyHolder[]> {
  const found: (string | null)[] = []
  for await (const names of redis.scanStream({ match: `${prefix}*`, count: 1_000 })) {
    if (names.length > 0) found.push(...(await redis.mget(names)))
  }
  return found
    .flatMap((text) => (text === null ? [] : [KeyHolder.safeParse(parseJson(text)).data]))
    .filter((holder) => holder !== undefined)
}

const fingerprintsOf = (settings: Settings, kind: Role): KeyHolder['keys'] => ({
  JWT_SECRET: settings.jwtSecrets.map(fingerprintOf),
  SECRETS_KEY: (kind === 'api' ? [settings.secretsPublicKey] : settings.secretsKeys.map(publicKeyOf)).map(
    fingerprintOf,
  ),
  RPC_KEY: settings.rpcKeys.map(fingerprintOf),
})

/**
 * Returns a fingerprint of 24 bits in hex: enough to tell an installation's keys apart, but too few to
 * recover a key.
 */
export const fingerprintOf = (key: string): string =>
  deriveKey(key, 'sandlot key fingerprint').toString('hex').slice(0, 6)
