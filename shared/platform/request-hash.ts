/**
 * Compares requests with the same Idempotency-Key. A request may contain little but a password, so its hash is keyed:
 * a reader of the database cannot try passwords against it.
 */
import { createHmac } from 'node:crypto'
import { deriveKey } from './seal.ts'

/** Hashes a request's JSON, independent of the order of its keys. @param secrets RPC_KEY; the first is used */
export const hashOfRequest = (request: object, [first]: readonly string[]): Buffer =>
  hashUnder(first!, request)

/** @param hash made under any of the keys */
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
