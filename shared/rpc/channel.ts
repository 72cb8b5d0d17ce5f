/**
 * Calls from the API to a worker go over TLS under a pre-shared key (RFC 4279) that Redis and PostgreSQL never see. The
 * handshake proves both sides to each other before a byte of a call is sent. Each worker has a key of its own. Nothing
 * that goes over it can be read, changed or sent again, and no certificate is needed. A connection costs 1 to 2 ms of
 * CPU and is kept; a call on it 20 to 90 µs for both sides. A MAC over each request would need nonces that are
 * remembered, a hash of each body before its end and a running MAC for streams, and would hide nothing.
 */
import { Agent, type AgentOptions, type RequestOptions } from 'node:https'
import type { TlsOptions } from 'node:tls'
import { deriveKey } from '../platform/seal.ts'

/** Each connection has its own key, so an attacker who learns RPC_KEY later cannot read earlier traffic. */
const suite = {
  ciphers: 'ECDHE-PSK-CHACHA20-POLY1305',
  // Node supports pre-shared keys for no later version.
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.2',
} as const

/** The worker that a call is for, and the one of our keys that it shares. */
export interface Callee {
  id: string
  secret: string
}

/** The API's side: connections for requests that carry {@link provenTo}. */
export const openCallAgent = (options: AgentOptions = {}): Agent =>
  // Without a certificate there is no name to check: the key proves who it is.
  new Agent({ ...options, ...suite, checkServerIdentity: () => undefined, maxCachedSessions: 0 })

/** The options of a request that only this worker can take. */
export function provenTo({ id, secret }: Callee): RequestOptions {
  const options = { pskCallback: () => ({ identity: keyName(secret), psk: keyOf(secret, id) }) }
  return options as RequestOptions
}

/** The worker's side. @param secrets all of RPC_KEY, so that both sides need not change it at the same instant */
export function acceptCallsTo(workerId: string, secrets: readonly string[]): TlsOptions {
  const keys = new Map(secrets.map((secret) => [keyName(secret), keyOf(secret, workerId)]))
  return { ...suite, pskCallback: (_socket, name) => keys.get(name) ?? null }
}

/** A name that distinguishes the keys of a rotation, and reveals nothing about them. */
const keyName = (secret: string) => deriveKey(secret, 'sandlot call key name').toString('hex').slice(0, 16)
const keyOf = (secret: string, workerId: string) => deriveKey(secret, `sandlot calls to ${workerId}`)
