/**
 * Whether two requests are the same: an Idempotency-Key stands for one of them. A request may hold little but a
 * password, so its hash is keyed: whoever reads the database cannot try passwords against it.
 */
import { createHash, createHmac } from 'node:crypto'
import { deriveKey } from './seal.ts'

/** The hash of a request's JSON, whatever the order of its keys. @param secrets CALLS_KEY; the first is used */
export const hashOfRequest = (request: unknown, [first]: readonly string[]): Buffer =>
  hashUnder(first!, textOf(request))

/** @param hash made under any of the keys, or under none, as early versions did */
export function isHashOf(hash: Buffer, request: unknown, secrets: readonly string[]): boolean {
  const text = textOf(request)
  return (
    secrets.some((secret) => hashUnder(secret, text).equals(hash)) ||
    createHash('sha256').update(text).digest().equals(hash)
  )
}

const hashUnder = (secret: string, text: string): Buffer =>
  createHmac('sha256', deriveKey(secret, 'sandlot request hash')).update(text).digest()

const textOf = (request: unknown): string => JSON.stringify(sorted(request))

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return entries.map(([key, inner]) => [key, sorted(inner)])
}
