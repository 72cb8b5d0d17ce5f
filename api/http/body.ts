import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { createGunzip, type Gunzip } from 'node:zlib'
import type { Context as KoaContext } from 'koa'
import type { Endpoint } from '../../shared/contract/endpoint.ts'
import { limits } from '../../shared/contract/limits.ts'
import type { Reservation } from '../../shared/platform/memory-budget.ts'
import { Problem } from '../../shared/platform/problem.ts'
import { wrongEncoding } from './assert-supported-headers.ts'
import { whyNoText } from './utf8.ts'

/** Time limit for receiving a body. */
const deadlineMs = (maxBytes: number): number => (maxBytes > limits.usualBodyBytes ? 30_000 : 10_000)
/** Decompressed size above which `maxRatio` applies. */
const anyRatioBytes = 256 * 1024
/** Maximum compression ratio. Ordinary text has a ratio of about ten. */
const maxRatio = 100
/**
 * Maximum number of values in a body. Without this limit, parsing 1 MiB of brackets would take a third of a
 * second and 20 MiB of memory.
 */
const maxValues = 100_000
const chunkObjectBytes = 128

/**
 * Reads and parses a JSON body.
 * @returns undefined if the request has no body
 * @throws {Problem} `body_too_large`, `request_timeout`, `unsupported_media_type` or `invalid_request`; if
 *   the memory budget is exhausted, `rate_limited` or `unavailable`
 */
export async function readBody(koa: KoaContext, endpoint: Endpoint, held: Reservation): Promise<unknown> {
  if (koa.request.length === 0) return undefined
  if (koa.request.is('application/json') === false) {
    throw new Problem('unsupported_media_type', 'Send the body as JSON, with Content-Type: application/json.')
  }
  const maxBytes = maxBytesOf(endpoint)
  const unpack = unpackerOf(koa.req)
  if (!unpack && (koa.request.length ?? 0) > maxBytes) throw tooLarge(endpoint, maxBytes)
  try {
    const bytes = await gather(koa.req, unpack, endpoint, held)
    if (bytes.length === 0) return undefined
    const why = whyNoText(bytes)
    if (why !== undefined) throw refused(why)
    return parse(bytes.toString())
  } catch (error) {
    // Otherwise, the connection would stay open to wait for the rest of the body.
    if (error instanceof Problem && error.code === 'request_timeout') koa.res.shouldKeepAlive = false
    throw error
  }
}

const maxBytesOf = ({ bodyBytes = limits.usualBodyBytes }: Endpoint): number => bodyBytes

function unpackerOf({ headers }: IncomingMessage): Gunzip | undefined {
  const encoding = headers['content-encoding']?.toLowerCase() ?? 'identity'
  if (encoding === 'identity') return undefined
  if (encoding === 'gzip' || encoding === 'x-gzip') return createGunzip()
  throw wrongEncoding('Send the body in UTF-8, uncompressed or compressed with gzip.', ['gzip', 'identity'])
}

async function gather(
  request: IncomingMessage,
  unpack: Gunzip | undefined,
  endpoint: Endpoint,
  held: Reservation,
): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const chunks: Buffer[] = []
  const maxBytes = maxBytesOf(endpoint)
  let size = 0
  let received = 0
  const count = (chunk: Buffer) => {
    received += chunk.length
  }
  const take = (chunk: Buffer) => {
    size += chunk.length
    try {
      if (size > maxBytes) throw tooLarge(endpoint, maxBytes)
      if (unpack && size > anyRatioBytes && size > received * maxRatio) throw tooPacked()
      held.add(chunk.length + chunkObjectBytes)
      chunks.push(chunk)
    } catch (error) {
      reject(error as Error)
    }
  }
  const brokeOff = () => {
    if (!request.complete)
      reject(new Problem('invalid_request', 'The connection was closed before the body was complete.'))
  }
  const source: Readable = unpack ? request.pipe(unpack) : request
  const whole = () => resolve(Buffer.concat(chunks))
  unpack?.on('error', () => reject(notJson()))
  request.on('error', brokeOff).on('close', brokeOff)
  if (unpack) request.on('data', count)
  source.on('data', take).on('end', whole)
  // After an event-loop stall, bytes that have already arrived must be read before the timeout applies.
  const ms = deadlineMs(maxBytes)
  const timer = setTimeout(() => setImmediate(() => reject(tooSlow(ms))), ms)
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    request.off('error', brokeOff).off('close', brokeOff)
    source.off('data', take).off('end', whole)
    if (unpack) request.off('data', count).unpipe(unpack)
    unpack?.destroy()
  }
}

function parse(text: string): unknown {
  assertFewValues(text)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw notJson()
  }
  assertPlain(value)
  return value
}

function assertFewValues(text: string): void {
  if (text.length <= maxValues) return
  let count = 0
  for (let at = 0; at < text.length; at++) {
    const character = text[at]
    if (character === '"') at = endOfText(text, at + 1)
    else if (character === ',' || character === '[' || character === '{') count++
    if (count > maxValues) throw tooManyValues()
  }
}

function endOfText(text: string, start: number): number {
  for (let from = start; ; ) {
    const quote = text.indexOf('"', from)
    if (quote < 0) return text.length
    let backslashes = 0
    while (text[quote - 1 - backslashes] === '\\') backslashes++
    if (backslashes % 2 === 0) return quote
    from = quote + 1
  }
}

/**
 * Name of a field that no body may contain. Copying the field would change the prototype of the target
 * object.
 */
const poison = '__proto__'

function assertPlain(value: unknown): void {
  const open = [value]
  while (open.length > 0) {
    const at = open.pop()
    if (typeof at !== 'object' || at === null) continue
    if (Object.hasOwn(at, poison)) throw notJson()
    for (const each of Object.values(at)) if (typeof each === 'object') open.push(each)
  }
}

const tooLarge = ({ forLargerBody }: Endpoint, maxBytes: number) =>
  new Problem(
    'body_too_large',
    `The request body exceeds this route's limit of ${maxBytes} bytes.${forLargerBody ? ` ${forLargerBody}` : ''}`,
  )

const tooPacked = () =>
  new Problem(
    'body_too_large',
    `A body larger than ${anyRatioBytes} bytes may have a compression ratio of at most ${maxRatio}. Send the body uncompressed.`,
  )

const tooSlow = (ms: number) =>
  new Problem(
    'request_timeout',
    `The request body did not arrive within ${ms / 1000} s. Send the request again.`,
  )

const notJson = () => refused('is not valid JSON')
const tooManyValues = () => refused(`has more than ${maxValues} values`)

const refused = (message: string) =>
  new Problem('invalid_request', `The body ${message}.`, { members: { errors: [{ path: '', message }] } })
