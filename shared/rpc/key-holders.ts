/**
 * Which process holds which keys, by fingerprint. Each process publishes them in Redis, so that an operator who
 * rotates keys sees when all processes have the new one (`npm run admin -- keys`).
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

/** As in the environment. For SECRETS_KEY, an API has the public half of the first. */
export const keyNames = ['JWT_SECRET', 'SECRETS_KEY', 'RPC_KEY'] as const
export type KeyName = (typeof keyNames)[number]

const fingerprint = /^[0-9a-f]{6}$/
const Fingerprints = z.array(z.string().regex(fingerprint)).max(100)
const KeyHolder = z.object({
  kind: z.enum(['api', 'worker']),
  /** Host and process id. */
  place: z.string().regex(/^[\w.-]{1,255}:\d{1,10}$/),
  /** In the order of their use: the first signs and seals. */
  keys: z.object({ JWT_SECRET: Fingerprints, SECRETS_KEY: Fingerprints, RPC_KEY: Fingerprints }),
})
export type KeyHolder = z.output<typeof KeyHolder>

const prefix = 'sandlot:keys:'
/** Milliseconds. */
const tellEveryMs = 2_000
const livesMs = 10_000
const withdrawMs = 500

/** Returns a function that withdraws the entry. */
export function announceKeys({ redis, settings }: Pick<Context, 'redis' | 'settings'>, kind: Role) {
  const key = prefix + randomUUID()
  const place = `${hostname()}:${process.pid}`
  const text = JSON.stringify({ kind, place, keys: fingerprintsOf(settings, kind) } satisfies KeyHolder)
  const tell = () => void redis.set(key, text, 'PX', livesMs).catch(() => {})
  tell()
  redis.on('ready', tell)
  const timer = setInterval(tell, tellEveryMs).unref()
  return async () => {
    clearInterval(timer)
    redis.off('ready', tell)
    await withTimeout(withdrawMs, redis.del(key)).catch(() => {})
  }
}

/** Processes that are alive, or were within ten seconds. These entries are not signed: they grant nothing. */
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

/** 24 bits distinguish the few keys of one installation, and are too few to find a key. */
export const fingerprintOf = (key: string): string =>
  deriveKey(key, 'sandlot key fingerprint').toString('hex').slice(0, 6)
