/**
 * Takes a large text out of a JSON body as bytes, so that no string of megabytes is made of it. What is left is for
 * JSON.parse, which finds whatever is wrong there. A body whose text is not as it should be is left as it is.
 */

/** Work that can pause at each `yield`: between two of them it takes a millisecond or two. */
type Steps<T> = Generator<undefined, T>

export interface Lifted {
  /** In UTF-8. It is a part of the body's own memory. */
  text: Buffer
  /** The body with an empty text in its place. */
  rest: Buffer
}

/** Bytes between two pauses. */
const stepBytes = 128 * 1024
/** Bytes that are copied sooner one by one. */
const shortRun = 32

const quote = 0x22
const backslash = 0x5c
const [openBrace, closeBrace, openBracket, closeBracket, colon, comma] = Buffer.from('{}[]:,')
const control = 0x20

/**
 * @param body is in UTF-8. It is changed when something is lifted
 * @param name of the member of the outermost object. Of several JSON.parse takes the last, and so does this
 * @param least bytes of the text as it stands there; a shorter one stays
 * @returns undefined when nothing was lifted: there is no such text, or it is not valid, or not well-formed Unicode
 */
export function* lift(body: Buffer, name: string, least: number): Steps<Lifted | undefined> {
  const found = yield* find(body, name)
  if (!found || found.to - found.from < least) return undefined
  const { from, to } = found
  const escapes = yield* countEscapes(body, from, to)
  if (escapes === undefined) return undefined
  const rest = Buffer.concat([body.subarray(0, from), body.subarray(to)])
  const end = escapes === 0 ? to : yield* replaceEscapes(body, from, to)
  return { text: body.subarray(from, end), rest }
}

interface Range {
  from: number
  to: number
}

/**
 * @returns where the text is between its quotes. For a body that is not valid JSON it may be anywhere outside of other
 *   strings: it stays invalid with an empty string there
 */
function* find(body: Buffer, name: string): Steps<Range | undefined> {
  let found: Range | undefined
  let depth = 0
  /** The last string of the outermost object. */
  let last: Range | undefined
  /** Whether the value that comes next is the member's. */
  let isNamed = false
  let pauseAt = stepBytes
  for (let at = 0; at < body.length; at++) {
    const byte = body[at]
    if (byte === quote) {
      const from = at + 1
      for (at = from; body[at] !== quote && at < body.length; ) {
        at = endOfString(body, at, at + stepBytes)
        yield
      }
      if (at >= body.length) return undefined
      pauseAt = at + stepBytes
      if (depth !== 1) continue
      last = { from, to: at }
      if (isNamed) found = last
      isNamed = false
    } else if (byte === colon && depth === 1) isNamed = last !== undefined && says(body, last, name)
    else if (byte === openBrace || byte === openBracket) depth++
    else if (byte === comma || byte === closeBrace || byte === closeBracket) {
      if (byte !== comma) depth--
      // The member was no text, and the one before it counts no more.
      if (isNamed && depth <= 1) {
        found = undefined
        isNamed = false
      }
    }
    if (at < pauseAt) continue
    pauseAt = at + stepBytes
    yield
  }
  return found
}

/** @returns the index of the quote that ends the string; one at or behind `until` where it comes later */
function endOfString(body: Buffer, at: number, until: number): number {
  const end = Math.min(body.length, until)
  for (let index = at; ; index++) {
    if (index >= end) return index
    const byte = body[index]
    if (byte === quote) return index
    if (byte === backslash) index++
  }
}

/** An escape takes six bytes for a character. */
function says(body: Buffer, { from, to }: Range, name: string): boolean {
  if (to - from > 6 * name.length) return false
  try {
    return JSON.parse(body.toString('utf8', from - 1, to + 1)) === name
  } catch {
    return false
  }
}

/** @returns undefined when the text has a character that JSON does not allow, a wrong escape, or a lone surrogate */
function* countEscapes(body: Buffer, from: number, to: number): Steps<number | undefined> {
  let count = 0
  for (let at = from; at < to; ) {
    const until = Math.min(to, at + stepBytes)
    while (at < until) {
      at = endOfPlain(body, at, until)
      if (at >= until) break
      const { length } = escapeAt(body, at, to)
      if (length === 0) return undefined
      count++
      at += length
    }
    yield
  }
  return count
}

/** Writes each character where its escape began, or before: it is never longer. @returns where the text ends now */
function* replaceEscapes(body: Buffer, from: number, to: number): Steps<number> {
  let end = from
  for (let at = from; at < to; ) {
    const until = Math.min(to, at + stepBytes)
    while (at < until) {
      const next = endOfPlain(body, at, until)
      if (next - at > shortRun) {
        body.copyWithin(end, at, next)
        end += next - at
        at = next
      } else while (at < next) body[end++] = body[at++]!
      if (at >= until) break
      const { length, code } = escapeAt(body, at, to)
      end = writeUtf8(body, end, code)
      at += length
    }
    yield
  }
  return end
}

/** @returns the index of the next backslash or control character, at most `until` */
function endOfPlain(body: Buffer, at: number, until: number): number {
  for (let index = at; index < until; index++) {
    const byte = body[index]!
    if (byte === backslash || byte < control) return index
  }
  return until
}

const simple = new Map(
  Object.entries({ '"': '"', '\\': '\\', '/': '/', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }).map(
    ([letter, character]) => [letter.charCodeAt(0), character.charCodeAt(0)],
  ),
)
const letterU = 0x75

/** The escape that begins here: its bytes and its character. No bytes where there is none, or one that is wrong. */
function escapeAt(body: Buffer, at: number, to: number): { length: number; code: number } {
  if (body[at] !== backslash) return { length: 0, code: 0 }
  const character = simple.get(body[at + 1]!)
  if (character !== undefined) return { length: 2, code: character }
  const unit = unitAt(body, at, to)
  if (unit === undefined || (unit >= 0xdc00 && unit < 0xe000)) return { length: 0, code: 0 }
  if (unit < 0xd800 || unit >= 0xe000) return { length: 6, code: unit }
  const low = unitAt(body, at + 6, to)
  if (low === undefined || low < 0xdc00 || low >= 0xe000) return { length: 0, code: 0 }
  return { length: 12, code: 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00) }
}

/** The UTF-16 unit of an escape such as \u00e4. */
function unitAt(body: Buffer, at: number, to: number): number | undefined {
  if (at + 6 > to || body[at] !== backslash || body[at + 1] !== letterU) return undefined
  let unit = 0
  for (let digit = at + 2; digit < at + 6; digit++) {
    const value = hexValue(body[digit]!)
    if (value === undefined) return undefined
    unit = unit * 16 + value
  }
  return unit
}

function hexValue(byte: number): number | undefined {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const letter = byte | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : undefined
}

/** @returns where the next character goes */
function writeUtf8(body: Buffer, at: number, code: number): number {
  if (code < 0x80) {
    body[at] = code
    return at + 1
  }
  const more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3
  // Its first bits say how many bytes it takes.
  body[at] = (0xff00 >> (more + 1)) | (code >> (6 * more))
  for (let left = more - 1; left >= 0; left--) body[at + more - left] = 0x80 | ((code >> (6 * left)) & 0x3f)
  return at + more + 1
}
