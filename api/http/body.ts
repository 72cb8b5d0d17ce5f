/** Reads the JSON body of a request, within limits on its bytes, its duration, its memory and its number of values. */
import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import type { Context as KoaContext } from 'koa'
import type { Endpoint } from '../../shared/contract/endpoint.ts'
import { limits } from '../../shared/contract/limits.ts'
import type { Reservation } from '../../shared/platform/memory-budget.ts'
import { Problem } from '../../shared/platform/problem.ts'
import { wrongEncoding } from './assert-supported-headers.ts'
import { whyNoText } from './utf8.ts'

/** Milliseconds in which a whole body must arrive. */
const deadlineMs = (maxBytes: number): number => (maxBytes > limits.usualBodyBytes ? 30_000 : 10_000)
/** A larger body may have at most this many times the bytes that were sent. Text has a tenth of that ratio. */
const anyRatioBytes = 256 * 1024
const maxRatio = 100
/** More values than any request needs. 1 MiB of brackets would take a third of a second, and 20 MiB of memory. */
const maxValues = 100_000
/** Memory of a chunk in addition to its bytes, measured on Node 24. */
const chunkObjectBytes = 128

/**
 * @param held counts the bytes of the body until the request is answered
 * @returns undefined when there is no body
 * @throws {Problem} `body_too_large`, `request_timeout`, `unsupported_media_type`, `invalid_request`; `rate_limited` or
 *   `unavailable` when there is no memory for it
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
    // Otherwise the connection would wait for the rest of the body.
    if (error instanceof Problem && error.code === 'request_timeout') koa.res.shouldKeepAlive = false
    throw error
  }
}

const maxBytesOf = ({ bodyBytes = limits.usualBodyBytes }: Endpoint): number => bodyBytes

type Unpacker = ReturnType<typeof createGunzip>

function unpackerOf({ headers }: IncomingMessage): Unpacker | undefined {
  const encoding = headers['content-encoding']?.toLowerCase() ?? 'identity'
  if (encoding === 'identity') return undefined
  if (encoding === 'gzip' || encoding === 'x-gzip') return createGunzip()
  throw wrongEncoding('The body must be in UTF-8, plain or compressed with gzip.', ['gzip', 'identity'])
}

async function gather(
  request: IncomingMessage,
  unpack: Unpacker | undefined,
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
      reject(new Problem('invalid_request', 'The connection closed before the body was complete.'))
  }
  const source: Readable = unpack ? request.pipe(unpack) : request
  const whole = () => resolve(Buffer.concat(chunks))
  unpack?.on('error', () => reject(notJson()))
  request.on('error', brokeOff).on('close', brokeOff)
  if (unpack) request.on('data', count)
  source.on('data', take).on('end', whole)
  // After an event-loop stall, the bytes that have arrived are read first.
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

/** Counts the characters that begin or separate values before any value is created. */
function assertFewValues(text: string): void {
  // Each value takes at least one character.
  if (text.length <= maxValues) return
  let count = 0
  for (let at = 0; at < text.length; at++) {
    const character = text[at]
    if (character === '"') at = endOfText(text, at + 1)
    else if (character === ',' || character === '[' || character === '{') count++
    if (count > maxValues) throw tooManyValues()
  }
}

/** Returns the index of the quote that ends the string. */
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

/** A field of this name would change the prototype of an object into which it is copied. */
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
    `The body of this route may have at most ${maxBytes} bytes.${forLargerBody ? ` ${forLargerBody}` : ''}`,
  )

const tooPacked = () =>
  new Problem(
    'body_too_large',
    `A body of more than ${anyRatioBytes} bytes may be compressed by a factor of at most ${maxRatio}. Send it uncompressed.`,
  )

const tooSlow = (ms: number) =>
  new Problem('request_timeout', `The JSON body of this route must arrive within ${ms / 1000} s.`)

const notJson = () => refused('is not valid JSON')
const tooManyValues = () => refused(`has more than ${maxValues} values`)

const refused = (message: string) =>
  new Problem('invalid_request', `The body ${message}.`, { members: { errors: [{ path: '', message }] } })
