/** Replaces exact text in bytes, in small steps. The time is in proportion to the lengths, whatever the bytes are. */
import { limits } from '../../shared/contract/limits.ts'
import { Problem } from '../../shared/platform/problem.ts'
import { asTheyAre, copyLines, countBareNewlines, makeEndings, withNewlines } from './line-endings.ts'
import type { Steps } from './slices.ts'

export interface Replacement {
  old: string
  new: string
  replaceAll: boolean
}

/** Line numbers that a refusal names at most. */
const linesNamed = 100
const similarNamed = 10

/** Bytes that one step handles: less than a millisecond. */
const stride = 16 * 1024

/**
 * A newline in `old` and `new` stands for the end of a line, LF or CR LF, and each line keeps its own. Only an `old` with
 * a CR LF in it is looked for as it is.
 * @throws {Problem} `edit_no_match`, `edit_not_unique` with the line numbers; `invalid_request` when the file would
 *   grow too large
 */
export function* replaceExact(
  content: Buffer,
  { old, new: other, replaceAll }: Replacement,
): Steps<{ content: Buffer; replacements: number }> {
  const needle = Buffer.from(old)
  const isExact = needle.includes('\r\n')
  const lines = isExact ? asTheyAre(content) : yield* withNewlines(content)
  const { text } = lines
  // A text that is longer than the file is not in it, and looking for it would take memory.
  const borders = needle.length > text.length ? undefined : yield* bordersOf(needle)
  const found = borders ? yield* countMatches(text, needle, borders) : { all: 0, apart: 0, first: [] }
  if (!borders || found.all === 0) throw yield* noMatch(content, needle, isExact)
  if (!replaceAll && found.all > 1) throw notUnique(found.all, yield* linesOf(text, found.first))
  const replacements = replaceAll ? found.apart : 1
  const replacement = Buffer.from(other)
  // Each of its newlines may become two bytes, where the file has such lines.
  const returns = content.includes('\r\n') ? yield* countBareNewlines(replacement) : 0
  const most = content.length + replacements * (replacement.length + returns - needle.length)
  if (most > 2 * limits.editBytes) {
    throw new Problem('invalid_request', `The file would have ${most} bytes; files/raw takes any size.`)
  }
  const result = Buffer.allocUnsafeSlow(most)
  const locate = lines.makeLocator()
  const endingsOf = makeEndings(content)
  let from = 0
  let to = 0
  let apartFrom = 0
  function* putLines(start: number, end: number): Steps<void> {
    to = yield* copyLines(result, to, replacement, endingsOf(start, end))
  }
  yield* eachMatch(text, needle, borders, (at) => {
    if (at < apartFrom) return
    apartFrom = at + needle.length
    const [start, end] = [locate(at), locate(apartFrom)]
    to = put(result, to, content, from, start)
    from = end
    if (returns === 0) to = put(result, to, replacement, 0, replacement.length)
    else return putLines(start, end)
  })
  to = put(result, to, content, from, content.length)
  return { content: result.subarray(0, to), replacements }
}

/** Up to this many bytes are copied one by one, because a call costs more. */
const fewBytes = 32

/** @returns the index after what was put */
function put(target: Buffer, at: number, source: Buffer, from: number, to: number): number {
  if (to - from > fewBytes) return at + source.copy(target, at, from, to)
  for (let next = from; next < to; next++) target[at++] = source[next]!
  return at
}

interface MatchCount {
  /** Matches, overlapping ones included: with those, it is not clear which one is meant. */
  all: number
  /** How many of them would be replaced, one after the other. */
  apart: number
  /** Offsets of the first of them. */
  first: number[]
}

function* countMatches(content: Buffer, needle: Buffer, borders: Int32Array): Steps<MatchCount> {
  const found: MatchCount = { all: 0, apart: 0, first: [] }
  let end = 0
  yield* eachMatch(content, needle, borders, (at) => {
    found.all++
    if (found.first.length < linesNamed) found.first.push(at)
    if (at < end) return
    found.apart++
    end = at + needle.length
  })
  return found
}

/**
 * Calls back with each offset of `needle`, overlapping ones too, and takes the steps that it gets back. Knuth, Morris and Pratt: Buffer.indexOf may take time
 * in proportion to the product of the lengths.
 */
function* eachMatch(
  content: Buffer,
  needle: Buffer,
  borders: Int32Array,
  onMatch: (at: number) => Steps<void> | void,
): Steps<void> {
  let matched = 0
  for (let from = 0; from < content.length; from += stride) {
    const to = Math.min(from + stride, content.length)
    for (let at = from; at < to; at++) {
      while (matched > 0 && content[at] !== needle[matched]) matched = borders[matched - 1]!
      if (content[at] === needle[matched]) matched++
      if (matched < needle.length) continue
      const more = onMatch(at - needle.length + 1)
      if (more) yield* more
      matched = borders[matched - 1]!
    }
    yield
  }
}

/** For each prefix of the needle: the length of its longest suffix that is also a prefix. */
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

const newline = 10

/** The line numbers of these offsets, in their order; the first line is 1. */
function* linesOf(content: Buffer, places: number[]): Steps<number[]> {
  const lines: number[] = []
  let line = 1
  for (let at = 0; lines.length < places.length; at++) {
    if (at === places[lines.length]) lines.push(line)
    if (content[at] === newline) line++
    if (at % stride === 0) yield
  }
  return lines
}

function* noMatch(content: Buffer, needle: Buffer, isExact: boolean): Steps<Problem> {
  const isThere = isExact && (yield* hasOtherEndings(content, needle))
  const similar = isThere ? [] : yield* similarLines(content, needle)
  const hint = isThere
    ? ' It is there with other line endings: send \\n, which stands for any.'
    : similar.length > 0
      ? ` Its first line is like line ${similar.join(', ')}, except for the space around it.`
      : ''
  return new Problem('edit_no_match', `The text to replace is not in the file.${hint}`, {
    members: { matches: 0, lines: [], similar_lines: similar },
  })
}

function* hasOtherEndings(content: Buffer, needle: Buffer): Steps<boolean> {
  const { text } = yield* withNewlines(content)
  const plain = (yield* withNewlines(needle)).text
  if (plain.length > text.length) return false
  return (yield* countMatches(text, plain, yield* bordersOf(plain))).all > 0
}

function notUnique(all: number, lines: number[]): Problem {
  const where = [...new Set(lines)].slice(0, 10).join(', ')
  const more = lines.length < all || new Set(lines).size > 10 ? ', …' : ''
  return new Problem(
    'edit_not_unique',
    `The text to replace is in the file ${all} times, on line ${where}${more}. Send more of what is around it, or replace_all.`,
    { members: { matches: all, lines } },
  )
}

/** Lines that equal the first line of what was looked for, except for white space around it. */
function* similarLines(content: Buffer, needle: Buffer): Steps<number[]> {
  if (Math.max(content.length, needle.length) > limits.viewBytes) return []
  const wanted = needle.toString('latin1').trim().split('\n', 1)[0]!.trim()
  const similar: number[] = []
  if (wanted === '') return similar
  let line = 0
  for (let from = 0; from <= content.length && similar.length < similarNamed; ) {
    const end = content.indexOf(newline, from)
    const to = end === -1 ? content.length : end
    line++
    if (content.toString('latin1', from, to).trim() === wanted) similar.push(line)
    from = to + 1
    yield
  }
  return similar
}
