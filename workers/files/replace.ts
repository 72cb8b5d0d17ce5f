/** Replaces exact text in bytes. Takes time in proportion to their length, whatever they are. */
import { limits } from '../../shared/contract/limits.ts'
import { Problem } from '../../shared/problem.ts'

export interface Replacement {
  old: string
  new: string
  replaceAll: boolean
}

/** Lines that a refusal names at most. */
const linesNamed = 100
const similarNamed = 10

/**
 * In a file whose every line ends in CR LF, a line's end in `old` and `new` means that too.
 * @throws {Problem} `edit_no_match`, `edit_not_unique` with the lines; `invalid_request` when it grew too large
 */
export function replaceExact(content: Buffer, { old, new: other, replaceAll }: Replacement) {
  const endings = endsInCrLf(content) ? (text: string) => text.replace(/(?<!\r)\n/g, '\r\n') : String
  const needle = Buffer.from(endings(old))
  const replacement = Buffer.from(endings(other))
  const found = countMatches(content, needle)
  if (found.all === 0) throw noMatch(content, needle)
  if (!replaceAll && found.all > 1) throw notUnique(found)
  const replacements = replaceAll ? found.apart : 1
  const size = content.length + replacements * (replacement.length - needle.length)
  if (size > 2 * limits.editBytes) {
    throw new Problem('invalid_request', `The file would have ${size} bytes; files/raw takes any size.`)
  }
  const result = Buffer.allocUnsafe(size)
  let from = 0
  let to = 0
  for (const at of matches(content, needle)) {
    if (at < from) continue
    to += content.copy(result, to, from, at)
    to += replacement.copy(result, to)
    from = at + needle.length
  }
  content.copy(result, to, from)
  return { content: result, replacements }
}

interface Found {
  /** Matches that overlap counted too: with those, it is not clear which one is meant. */
  all: number
  /** What replacing one after the other would replace. */
  apart: number
  /** Where the first of them begin; the first line is 1. */
  lines: number[]
}

function countMatches(content: Buffer, needle: Buffer): Found {
  const found: Found = { all: 0, apart: 0, lines: [] }
  let line = 1
  let counted = 0
  let end = 0
  for (const at of matches(content, needle)) {
    found.all++
    if (at >= end) {
      found.apart++
      end = at + needle.length
    }
    if (found.lines.length === linesNamed) continue
    for (
      let next = content.indexOf(10, counted);
      next !== -1 && next < at;
      next = content.indexOf(10, counted)
    ) {
      line++
      counted = next + 1
    }
    found.lines.push(line)
  }
  return found
}

/** Where `needle` begins, overlapping or not: Knuth, Morris and Pratt, as Buffer.indexOf may take forever. */
function* matches(content: Buffer, needle: Buffer): Generator<number> {
  const borders = bordersOf(needle)
  let matched = 0
  for (let at = 0; at < content.length; at++) {
    while (matched > 0 && content[at] !== needle[matched]) matched = borders[matched - 1]!
    if (content[at] === needle[matched]) matched++
    if (matched < needle.length) continue
    yield at - needle.length + 1
    matched = borders[matched - 1]!
  }
}

/** Of each start of the needle: how long its longest end is that is also its start. */
function bordersOf(needle: Buffer): Int32Array {
  const borders = new Int32Array(needle.length)
  let length = 0
  for (let at = 1; at < needle.length; at++) {
    while (length > 0 && needle[at] !== needle[length]) length = borders[length - 1]!
    if (needle[at] === needle[length]) length++
    borders[at] = length
  }
  return borders
}

function endsInCrLf(content: Buffer): boolean {
  let end = content.indexOf(10)
  if (end === -1) return false
  for (; end !== -1; end = content.indexOf(10, end + 1)) {
    if (end === 0 || content[end - 1] !== 13) return false
  }
  return true
}

function noMatch(content: Buffer, needle: Buffer): Problem {
  const similar = similarLines(content, needle)
  const hint =
    similar.length === 0
      ? ''
      : ` Its first line is like line ${similar.join(', ')}, but for the space around.`
  return new Problem('edit_no_match', `The text to replace is not in the file.${hint}`, {
    members: { matches: 0, lines: [], similar_lines: similar },
  })
}

function notUnique({ all, lines }: Found): Problem {
  const where = [...new Set(lines)].slice(0, 10).join(', ')
  const more = lines.length < all || new Set(lines).size > 10 ? ', …' : ''
  return new Problem(
    'edit_not_unique',
    `The text to replace is in the file ${all} times, on line ${where}${more}. Send more of what is around it, or replace_all.`,
    { members: { matches: all, lines } },
  )
}

/** Lines that equal the first line of what was looked for, but for the space around it. */
function similarLines(content: Buffer, needle: Buffer): number[] {
  const wanted = needle.toString('latin1').trim().split('\n', 1)[0]!.trim()
  if (wanted === '' || content.length > limits.viewBytes) return []
  const lines = content.toString('latin1').split('\n')
  return lines.flatMap((line, index) => (line.trim() === wanted ? [index + 1] : [])).slice(0, similarNamed)
}
