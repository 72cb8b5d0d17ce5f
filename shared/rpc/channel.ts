/**
 * The way of calls from the API to a worker: TLS under a key that both hold and Redis and PostgreSQL never
 * see (RFC 4279). A handshake proves both sides to each other before a byte of a call is sent, each worker
 * has a key of its own, and what goes over it can be neither read, changed, nor sent again. No certificate is needed.
 */
import { Agent, type AgentOptions, type RequestOptions } from 'node:https'
import type { TlsOptions } from 'node:tls'
import { deriveKey } from '../platform/seal.ts'

/** Each connection has a key of its own besides: who learns CALLS_KEY later reads nothing of before. */
const suite = {
  ciphers: 'ECDHE-PSK-CHACHA20-POLY1305',
  // Node has pre-shared keys for no later one.
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.2',
} as const

/** Which worker a call is for, and the key of ours that it has as well. */
export interface Callee {
  id: string
  secret: string
}

/** The client's side: connections for requests that carry {@link provenTo}. */
export const openCallAgent = (options: AgentOptions = {}): Agent =>
  // Without a certificate there is no name to check: the key proves who it is.
  new Agent({ ...options, ...suite, checkServerIdentity: () => undefined, maxCachedSessions: 0 })

/** What a request is opened with, so that this worker alone can take it. */
export function provenTo({ id, secret }: Callee): RequestOptions {
  const options = { pskCallback: () => ({ identity: keyName(secret), psk: keyOf(secret, id) }) }
  return options as RequestOptions
}

/**
 * The worker's side.
 * @param secrets all of CALLS_KEY, so that both sides need not change it in the same instant
 */
export function acceptCallsTo(workerId: string, secrets: readonly string[]): TlsOptions {
  const keys = new Map(secrets.map((secret) => [keyName(secret), keyOf(secret, workerId)]))
  return { ...suite, pskCallback: (_socket, name) => keys.get(name) ?? null }
}

/** Tells the keys of a rotation apart, and nothing of them. */
const keyName = (secret: string) => deriveKey(secret, 'sandlot call key name').toString('hex').slice(0, 16)
const keyOf = (secret: string, workerId: string) => deriveKey(secret, `sandlot calls to ${workerId}`)
