/** Whether two requests ask for the same: an Idempotency-Key stands for one of them. */
import { createHash } from 'node:crypto'

/** SHA-256 of the request's JSON, the same for every order of its keys. */
export const hashOfRequest = (request: unknown): Buffer =>
  createHash('sha256')
    .update(JSON.stringify(sorted(request)))
    .digest()

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return entries.map(([key, inner]) => [key, sorted(inner)])
}
