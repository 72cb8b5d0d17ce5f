/**
 * Hashes requests. Each hash is keyed with RPC_KEY, so that a reader of the database cannot use it to guess a
 * password in the request.
 */
import { createHmac } from 'node:crypto'
import { deriveKey } from './seal.ts'

/**
 * The order of object keys does not affect the hash.
 * @param secrets all values of RPC_KEY, of which the first is used
 */
export const hashOfRequest = (request: object, [first]: readonly string[]): Buffer =>
  hashUnder(first!, request)

/** @param secrets all values of RPC_KEY; the hash may have been computed with any of them */
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
