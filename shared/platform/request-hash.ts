/**
 * Hashes of requests, to compare those with the same Idempotency-Key. A request may contain little except a password,
 * so the hash is keyed, and cannot be used to guess the password without RPC_KEY.
 */
import { createHmac } from 'node:crypto'
import { deriveKey } from './seal.ts'

/**
 * Hashes the JSON of a request, independent of the order of keys.
 * @param secrets RPC_KEY, of which the first is used
 */
export const hashOfRequest = (request: object, [first]: readonly string[]): Buffer =>
  hashUnder(first!, request)

/** @param hash under any of the keys */
export const isHashOf = (hash: Buffer, request: object, secrets: readonly string[]): boolean =>
  secrets.some((secret) => hashUnder(secret, request).equals(hash))

const hashUnder = (secret: string, request: object): Buffer =>
  createHmac('sha256', deriveKey(secret, 'sandlot request hash'))
    .update(JSON.stringify(sorted(request)))
    .digest()

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return entries.map(([key, inner]) => [key, sorted(inner)])
}
