/**
 * Replaces exact text in a file in linear time, with regular pauses for other requests (`cooperative.ts`). An
 * LF in the client's text matches both LF and CR LF, and each replaced line keeps its line ending.
 */
import { limits } from '../../shared/contract/limits.ts'
import { Problem } from '../../shared/platform/problem.ts'
import type { Steps } from './cooperative.ts'

export interface Replacement {
  old: string
  new: string
  replaceAll: boolean
}

const maxLines = 100
const maxSimilar = 10

/** Bytes processed per step. A step takes less than a millisecond. */
const stride = 16 * 1024
const newline = 10
const carriageReturn = 13

/** Returns the maximum memory that `replaceExact` allocates in addition to copies of `old` and `new`. */
export const memoryToReplace = (content: Buffer, text: Replacement): number =>
  maxResultBytes(content, text) + Buffer.byteLength(text.old) * Int32Array.BYTES_PER_ELEMENT

/**
 * Returns the maximum size of the result. Counts each byte of `new` twice, because each LF may become CR LF.
 */
function maxResultBytes(content: Buffer, { old, new: other, replaceAll }: Replacement): number {
  const matches = replaceAll ? content.length / Buffer.byteLength(old) : 1
  return Math.min(limits.editBytes, content.length + Math.ceil(matches * 2 * Buffer.byteLength(other)))
}

/**
 * Replaces the only match of `old`, or with `replaceAll`, every match. If `old` contains CR LF, it is matched
 * verbatim.
 * @throws {Problem} `edit_no_match`, `edit_not_unique` with the line numbers, or `invalid_request` if the
 *   result is too large
 */
export function* replaceExact(
  content: Buffer,
  text: Replacement,
): Steps<{ content: Buffer; replacements: number }> {
  const [needle, replacement] = [Buffer.from(text.old), Buffer.from(text.new)]
  const isExact = needle.includes('\r\n')
  const endingsOf = content.includes('\r\n') && replacement.includes('\n') ? makeEndings(content) : undefined
  const result = Buffer.allocUnsafeSlow(maxResultBytes(content, text))
  const lines: number[] = []
  let [all, replacements, from, to] = [0, 0, 0, 0]

  function put(source: Buffer, start: number, end: number): void {
    if (to + end - start > result.length) throw tooLarge()
    // For a few bytes, calling `copy` costs more than the loop.
    if (end - start > 32) to += source.copy(result, to, start, end)
    else for (let at = start; at < end; at++) result[to++] = source[at]!
  }
  function putLines(isNextCrLf: () => boolean): void {
    for (let at = 0; at < replacement.length; at++) {
      if (isBareNewline(replacement, at) && isNextCrLf()) result[to++] = carriageReturn
      result[to++] = replacement[at]!
    }
    // Writes past the end of a buffer are ignored.
    if (to > result.length) throw tooLarge()
  }
  yield* eachMatch(content, needle, isExact, ({ start, end, line }) => {
    all++
    if (lines.length < maxLines) lines.push(line)
    if (start === undefined || (all > 1 && !text.replaceAll)) return 0
    replacements++
    put(content, from, start)
    if (endingsOf) putLines(endingsOf(start, end))
    else put(replacement, 0, replacement.length)
    from = end
    return replacement.length
  })
  if (all === 0) throw yield* noMatch(content, text.old, isExact)
  if (all > 1 && !text.replaceAll) throw notUnique(all, lines)
  put(content, from, content.length)
  return { content: result.subarray(0, to), replacements }
}

const tooLarge = () =>
  new Problem(
    'invalid_request',
    `The edited file would exceed the limit of ${limits.editBytes / 2 ** 20} MiB for edits. Use files/raw instead.`,
  )

interface Match {
  /** Index of the first byte, or undefined if the match overlaps an earlier match that has a `start`. */
  start: number | undefined
  end: number
  /** Line in which the match starts, counted from 1. */
  line: number
}

/**
 * Calls `onMatch` for each match. Includes overlapping matches, because they make an edit ambiguous. Uses the
 * Knuth-Morris-Pratt algorithm, because `Buffer.indexOf` is not linear.
 * @param isExact false if an LF in the needle also matches CR LF
 * @param onMatch returns the number of bytes that it copied, which count as work when pauses are scheduled
 */
function* eachMatch(
  content: Buffer,
  needle: Buffer,
  isExact: boolean,
  onMatch: (match: Match) => number,
): Steps<void> {
  // Saves the memory of `bordersOf`.
  if (needle.length > content.length) return
  const borders = yield* bordersOf(needle)
  const isReturn = (at: number) => !isExact && content[at] === carriageReturn && content[at + 1] === newline
  let newlines = 0
  for (const byte of needle) if (byte === newline) newlines++
  let [matched, line, work] = [0, 1, 0]
  // `passed` counts the bytes up to `at`, except ignored CRs. `apartFrom` is its value at the end of the most
  // recent match with a `start`.
  let [passed, apartFrom] = [0, 0]
  for (let at = 0; at < content.length; at++) {
    if (++work >= stride) {
      work = 0
      yield
    }
    if (isReturn(at)) continue
    passed++
    const byte = content[at]
    while (matched > 0 && byte !== needle[matched]) matched = borders[matched - 1]!
    if (byte === needle[matched]) matched++
    if (byte === newline) line++
    if (matched < needle.length) continue
    matched = borders[matched - 1]!
    const isApart = passed - needle.length >= apartFrom
    let start = at + 1
    if (isApart) {
      apartFrom = passed
      for (let left = needle.length; left > 0; left--) if (isReturn(--start - 1)) start--
    }
    work += onMatch({ start: isApart ? start : undefined, end: at + 1, line: line - newlines })
  }
}

/** Returns, for each prefix of the needle, the length of its longest proper suffix that is also a prefix. */
function* bordersOf(needle: Buffer): Steps<Int32Array> {
  const borders = new Int32Array(needle.length)
  let length = 0
  for (let at = 1; at < needle.length; at++) {
    while (length > 0 && needle[at] !== needle[length]) length = borders[length - 1]!
    if (needle[at] === needle[length]) length++
    borders[at] = length
    if (at % stride === 0) yield
  }
  return borders
}

function* noMatch(content: Buffer, old: string, isExact: boolean): Steps<Problem> {
  let hasOtherEndings = false
  if (isExact) {
    yield* eachMatch(content, Buffer.from(old.replaceAll('\r\n', '\n')), false, () => {
      hasOtherEndings = true
      return 0
    })
  }
  const similar = hasOtherEndings ? [] : yield* similarLines(content, old)
  const hint = hasOtherEndings
    ? ' It occurs with other line endings. Send \\n, which matches any line ending.'
    : similar.length > 0
      ? ` Lines that match its first line except for leading or trailing white space: ${similar.join(', ')}.`
      : ''
  return new Problem('edit_no_match', `The text to replace does not occur in the file.${hint}`, {
    members: { matches: 0, lines: [], similar_lines: similar },
  })
}

function notUnique(all: number, lines: number[]): Problem {
  const unique = [...new Set(lines)]
  const where = `${unique.length > 1 ? 'lines' : 'line'} ${unique.slice(0, 10).join(', ')}`
  const more = lines.length < all || unique.length > 10 ? ', …' : ''
  return new Problem(
    'edit_not_unique',
    `The text to replace occurs ${all} times, on ${where}${more}. Include more context, or set replace_all.`,
    { members: { matches: all, lines } },
  )
}

/**
 * Returns the numbers of the lines that equal the first line of `old` except for leading or trailing white
 * space.
 */
function* similarLines(content: Buffer, old: string): Steps<number[]> {
  const similar: number[] = []
  const wanted = Buffer.from(old).toString('latin1').trim().split('\n', 1)[0]!.trim()
  if (Math.max(content.length, old.length) > limits.viewBytes || wanted === '') return similar
  let line = 0
  for (let from = 0; from <= content.length && similar.length < maxSimilar; ) {
    const end = content.indexOf(newline, from)
    const to = end === -1 ? content.length : end
    line++
    if (content.toString('latin1', from, to).trim() === wanted) similar.push(line)
    from = to + 1
    yield
  }
  return similar
}

const isBareNewline = (text: Buffer, at: number): boolean =>
  text[at] === newline && text[at - 1] !== carriageReturn

/**
 * Chooses the line endings of replacements. The returned function must be called for each match in `content`,
 * in order of `start`. For every match, it returns a function that must be called for each LF of the
 * replacement, and returns true if this LF should become CR LF.
 */
function makeEndings(content: Buffer): (start: number, end: number) => () => boolean {
  let following = content.indexOf(newline)
  let last = -1
  return (start, end) => {
    let at = start - 1
    let isCrLf: boolean | undefined
    /**
     * Uses the line endings of the match in order, and repeats the last one. If the match has none, uses the
     * ending of a nearby line.
     */
    return () => {
      if (at >= start - 1 && at < end) {
        at = content.indexOf(newline, at + 1)
        if (at !== -1 && at < end) isCrLf = content[at - 1] === carriageReturn
        else at = end
      }
      if (isCrLf !== undefined) return isCrLf
      while (following !== -1 && following < end) {
        last = following
        following = content.indexOf(newline, following + 1)
      }
      const nearest = following === -1 ? last : following
      isCrLf = nearest > 0 && content[nearest - 1] === carriageReturn
      return isCrLf
    }
  }
}
