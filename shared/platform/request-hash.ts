/**
 * Hashes requests. The hashes are keyed with RPC_KEY, so that a reader of the database cannot use them to
 * guess passwords in requests.
 */
import { createHmac } from 'node:crypto'
import { deriveKey } from './seal.ts'

/** Hashes a request under the first RPC_KEY, regardless of the order of object keys. */
export const hashOfRequest = (request: object, [first]: readonly string[]): Buffer =>
  hashUnder(first!, request)

/** Returns whether a hash is the hash of a request under any RPC_KEY. */
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
