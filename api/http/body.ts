/** Reads the JSON body of a request, within limits on its bytes, its duration, its memory and its number of values. */
import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import type { Context as KoaContext } from 'koa'
import type { Endpoint } from '../../shared/contract/endpoint.ts'
import { limits } from '../../shared/contract/limits.ts'
import type { Holding } from '../../shared/platform/ledger.ts'
import { Problem } from '../../shared/platform/problem.ts'
import { wrongEncoding } from './understood.ts'
import { whyNoText } from './utf8.ts'

/** At least this many bytes must come in each such time, or the rest of the body. Any line that carries megabytes is faster. */
const pace = { ms: 10_000, bytes: 64 * 1024 }
/** Milliseconds for a whole body, however steady its pace. */
const wholeMs = 120_000
/** A body of more bytes may be at most this many times as large as what was sent. Text has a tenth of that ratio. */
const anyRatioBytes = 256 * 1024
const mostRatio = 100
/** More values than any request needs. A body of nothing but brackets would take twenty times its size, and seconds. */
const mostValues = 100_000
/** Memory of the object that holds a chunk, measured on Node 24: a body of small chunks takes more than its bytes. */
const chunkObjectBytes = 128

/**
 * @param held counts the bytes of the body until the request is answered
 * @returns undefined when there is no body
 * @throws {Problem} `body_too_large`, `body_too_slow`, `unsupported_media_type`, `invalid_request`; `rate_limited` or
 *   `unavailable` when there is no memory for it
 */
export async function readBody(koa: KoaContext, endpoint: Endpoint, held: Holding): Promise<unknown> {
  if (koa.request.length === 0) return undefined
  if (koa.request.is('application/json') === false) {
    throw new Problem('unsupported_media_type', 'Send the body as JSON, with Content-Type: application/json.')
  }
  const most = endpoint.bodyBytes ?? limits.usualBodyBytes
  const unpack = unpackerOf(koa.req)
  if (!unpack && (koa.request.length ?? 0) > most) throw tooLarge(most)
  try {
    const bytes = await gather(koa.req, unpack, most, held)
    if (bytes.length === 0) return undefined
    mustBeUtf8(bytes)
    return parse(bytes.toString())
  } catch (error) {
    // The rest of the body is not waited for.
    if (error instanceof Problem && error.code === 'body_too_slow') koa.res.shouldKeepAlive = false
    throw error
  }
}

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
  most: number,
  held: Holding,
): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const chunks: Buffer[] = []
  let size = 0
  let came = 0
  const count = (chunk: Buffer) => {
    came += chunk.length
  }
  const take = (chunk: Buffer) => {
    size += chunk.length
    try {
      if (size > most) throw tooLarge(most)
      if (unpack && size > anyRatioBytes && size > came * mostRatio) throw tooPacked()
      held.add(chunk.length + chunkObjectBytes)
      chunks.push(chunk)
    } catch (error) {
      reject(error as Error)
    }
  }
  const brokeOff = () => {
    if (!request.complete) reject(new Problem('invalid_request', 'The body broke off.'))
  }
  const source: Readable = unpack ? request.pipe(unpack) : request
  const whole = () => resolve(Buffer.concat(chunks))
  unpack?.on('error', () => reject(notJson()))
  request.on('error', brokeOff).on('close', brokeOff)
  if (unpack) request.on('data', count)
  source.on('data', take).on('end', whole)
  const stop = keepPace(request, reject)
  try {
    return await promise
  } finally {
    stop()
    request.off('error', brokeOff).off('close', brokeOff)
    source.off('data', take).off('end', whole)
    if (unpack) request.off('data', count).unpipe(unpack)
    unpack?.destroy()
  }
}

/** @returns what stops the watch */
function keepPace(request: IncomingMessage, fail: (error: Problem) => void): () => void {
  const startedAt = performance.now()
  let came = 0
  const count = (chunk: Buffer) => {
    came += chunk.length
  }
  const look = () => {
    const late = performance.now() - startedAt > wholeMs
    if (late || came < pace.bytes) fail(tooSlow())
    came = 0
  }
  request.on('data', count)
  // What came while this process stood still is read first.
  const timer = setInterval(() => setImmediate(look), pace.ms)
  return () => {
    clearInterval(timer)
    request.off('data', count)
  }
}

function mustBeUtf8(bytes: Buffer): void {
  const why = whyNoText(bytes)
  if (why !== undefined) throw refused(why)
}

function parse(text: string): unknown {
  mustHaveFewValues(text)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw notJson()
  }
  mustBePlain(value)
  return value
}

/** Counts the characters that begin or separate values, before any value is made. */
function mustHaveFewValues(text: string): void {
  // Each value takes at least one character.
  if (text.length <= mostValues) return
  let count = 0
  for (let at = 0; at < text.length; at++) {
    const character = text[at]
    if (character === '"') at = endOfText(text, at + 1)
    else if (character === ',' || character === '[' || character === '{') count++
    if (count > mostValues) throw tooManyValues()
  }
}

/** @returns the index of the quote that ends the string which begins here */
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

/** A field of this name would change the prototype of an object that it is copied into. */
const poison = '__proto__'

function mustBePlain(value: unknown): void {
  const open = [value]
  while (open.length > 0) {
    const at = open.pop()
    if (typeof at !== 'object' || at === null) continue
    if (Object.hasOwn(at, poison)) throw notJson()
    for (const each of Object.values(at)) if (typeof each === 'object') open.push(each)
  }
}

const tooLarge = (most: number) =>
  new Problem(
    'body_too_large',
    `The body of this route may have at most ${most} bytes.${most === limits.bodyBytes ? ` ${forMore}` : ''}`,
  )

const forMore = 'Send a larger file with PUT files/raw, and larger stdin with POST exec/:exec_id/stdin.'

const tooPacked = () =>
  new Problem(
    'body_too_large',
    `A compressed body of more than ${anyRatioBytes} bytes may be at most ${mostRatio} times as large as what is sent. Send it plain.`,
  )

const tooSlow = () =>
  new Problem(
    'body_too_slow',
    `A JSON body has ${wholeMs / 1000} s, and must bring ${pace.bytes} bytes or its rest in each ${pace.ms / 1000} s.`,
  )

const notJson = () => refused('is not valid JSON')
const tooManyValues = () => refused(`has more than ${mostValues} values`)

const refused = (message: string) =>
  new Problem('invalid_request', `The body ${message}.`, { members: { errors: [{ path: '', message }] } })
