/**
 * Derives the keys for each kind of process. A process gets only the keys that it needs, so a compromised
 * process does not reveal the other keys.
 */
import { publicKeyOf, rpcKeyOf } from './seal.ts'

/** The configured keys. Each value may be a comma-separated list, in which the first key signs and seals. */
export interface Keys {
  JWT_SECRET: string
  SECRETS_KEY: string
  RPC_KEY?: string | undefined
}

/**
 * Derives the keys that an API process uses instead of SECRETS_KEY.
 * @throws if SECRETS_KEY is empty
 */
export function keysOfApi({ SECRETS_KEY, RPC_KEY }: Pick<Keys, 'SECRETS_KEY' | 'RPC_KEY'>) {
  const secrets = SECRETS_KEY.split(',')
    .map((text) => text.trim())
    .filter((text) => text !== '')
  if (secrets.length === 0) throw new Error('SECRETS_KEY is empty')
  return {
    SECRETS_PUBLIC_KEY: publicKeyOf(secrets[0]!),
    RPC_KEY: RPC_KEY ?? secrets.map(rpcKeyOf).join(','),
  }
}

/** Returns the keys for one kind of process. Keys that the process must not have are undefined. */
export function keysFor(kind: 'api' | 'worker', keys: Keys): Record<string, string | undefined> {
  const { RPC_KEY, SECRETS_PUBLIC_KEY } = keysOfApi(keys)
  return kind === 'api'
    ? { JWT_SECRET: keys.JWT_SECRET, RPC_KEY, SECRETS_PUBLIC_KEY, SECRETS_KEY: undefined }
    : { JWT_SECRET: undefined, RPC_KEY, SECRETS_PUBLIC_KEY: undefined, SECRETS_KEY: keys.SECRETS_KEY }
}
