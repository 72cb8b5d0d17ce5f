/**
 * Whether two requests are the same: an Idempotency-Key stands for one of them. A request may hold little but a
 * password, so its hash is keyed: a reader of the database cannot try passwords against it.
 */
import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto'
import { StringDecoder } from 'node:string_decoder'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { deriveKey } from './seal.ts'

/** A request whose `stdin` may be the bytes of a text: its hash is that of the text. */
export type HashedRequest = object & { stdin?: string | Buffer | undefined }

/** The hash of a request's JSON, whatever the order of its keys. @param secrets CALLS_KEY; the first is used */
export async function hashOfRequest(request: HashedRequest, [first]: readonly string[]): Promise<Buffer> {
  const [hash] = await digestsOf(request, [hmacUnder(first!)])
  return hash!
}

/** @param hash made under any of the keys, or under none, as early versions did */
export async function isHashOf(
  hash: Buffer,
  request: HashedRequest,
  secrets: readonly string[],
): Promise<boolean> {
  const all = await digestsOf(request, [...secrets.map(hmacUnder), createHash('sha256')])
  return all.some((one) => one.equals(hash))
}

const hmacUnder = (secret: string) => createHmac('sha256', deriveKey(secret, 'sandlot request hash'))

async function digestsOf(request: HashedRequest, hashes: (Hash | Hmac)[]): Promise<Buffer[]> {
  for (const piece of piecesOf(request)) {
    if (piece === pause) await nextTurn()
    else for (const hash of hashes) hash.update(piece)
  }
  return hashes.map((hash) => hash.digest())
}

const pause = Symbol('pause')
/** Bytes of stdin between two pauses. */
const sliceBytes = 256 * 1024

/** The JSON of the request's sorted entries. The event loop does something else behind each slice of a large stdin. */
function* piecesOf(request: HashedRequest): Generator<string | typeof pause> {
  const { stdin } = request
  if (!Buffer.isBuffer(stdin)) return yield JSON.stringify(sorted(request))
  let opener = '['
  for (const [key, value] of sorted({ ...request, stdin: '' }) as [string, unknown][]) {
    yield opener
    opener = ','
    if (key !== 'stdin') {
      yield JSON.stringify([key, value])
      continue
    }
    yield '["stdin","'
    // No character is cut where two slices meet.
    const decoder = new StringDecoder('utf8')
    for (let at = 0; at < stdin.length; at += sliceBytes) {
      yield JSON.stringify(decoder.write(stdin.subarray(at, at + sliceBytes))).slice(1, -1)
      yield pause
    }
    yield '"]'
  }
  yield ']'
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return entries.map(([key, inner]) => [key, sorted(inner)])
}
