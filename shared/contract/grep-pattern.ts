/**
 * Translates files/grep patterns to POSIX extended regular expressions, the only syntax on which
 * implementations of grep agree. Patterns that POSIX cannot express are refused.
 */

export const grepSyntax =
  'a POSIX extended regular expression, plus \\d \\w \\s \\h \\b \\t, their negations and (?:…), but without lookaround, backreferences and inline flags'

type GrepPattern = { posix: string } | { refused: string }

/**
 * Returns the translation of a pattern or, if the pattern is refused, the predicate of an error message, such
 * as `has "(?=", which is lookaround`.
 */
export function translateGrepPattern(pattern: string): GrepPattern {
  try {
    return { posix: translate(pattern) }
  } catch (error) {
    if (error instanceof Refused) return { refused: error.message.toWellFormed() }
    throw error
  }
}

class Refused extends Error {}

const classes: Record<string, string> = { d: '0-9', w: '[:alnum:]_', s: '[:space:]', h: '[:blank:]' }
const isClass = (letter: string) => letter.toLowerCase() in classes
const isNegatedClass = (letter: string) => letter !== letter.toLowerCase()

const controls: Record<string, string> = { t: '\t', r: '\r', f: '\f', v: '\v', a: '\x07', e: '\x1b' }

const controlsInBrackets: Record<string, string> = { ...controls, n: '\n', b: '\b' }

/**
 * Escapes that match a position. Each line is matched separately, so `\A` and `\Z` match the start and end of
 * a line.
 */
const anchors: Record<string, string> = { b: '\\b', B: '\\B', '<': '\\<', '>': '\\>', A: '^', Z: '$', z: '$' }

const special = /[.[\\()*+?{|^$]/
const interval = /^\{(\d+(,\d*)?|,\d+)\}/

function translate(pattern: string): string {
  const ahead = (at: number) => pattern.slice(at, at + 40)
  let posix = ''
  let isRepeatable = false
  for (let at = 0; at < pattern.length; ) {
    const character = pattern[at]!
    const repeat = '*+?'.includes(character)
      ? character
      : character === '{'
        ? interval.exec(ahead(at))?.[0]
        : undefined
    if (repeat) {
      if (!isRepeatable)
        throw new Refused(`has nothing before "${repeat}" to repeat; write "\\${repeat}" for the text`)
      at += repeat.length
      posix += repeat
      if (pattern[at] === '+')
        throw new Refused(
          `has a possessive quantifier, "${repeat}+"; write "${repeat}" for one that backtracks`,
        )
      // A lazy quantifier matches the same lines as a greedy one.
      if (pattern[at] === '?') at++
    } else if (character === '(') {
      posix += '('
      at += groupLength(ahead(at))
      isRepeatable = false
    } else if (character === '[') {
      const set = readSet(pattern, at)
      posix += set.posix
      at = set.end
      isRepeatable = true
    } else {
      const isEscape = character === '\\'
      posix += isEscape ? escaped(pattern[at + 1], ahead(at)) : character === '{' ? '\\{' : character
      at += isEscape ? 2 : 1
      isRepeatable = character !== '|' && character !== '^'
    }
  }
  return posix
}

/**
 * Returns the length of a group's opening, such as `(?:`. Every opening is translated to `(`. Group numbers
 * do not matter, because backreferences are refused.
 */
function groupLength(ahead: string): number {
  const opening = /^\(\?(?::|P?<\w+>|'\w+')/.exec(ahead)?.[0]
  if (opening) return opening.length
  const refusals: [RegExp, string][] = [
    [/^\(\?<?[=!]/, 'is lookaround; search for a broader pattern, then filter the lines'],
    [/^\(\?[a-zA-Z^-]+[:)]/, 'sets flags; to ignore case, set ignore_case'],
    [/^\(\?.?/u, 'has no POSIX equivalent; write a plain group, "(…)"'],
  ]
  for (const [syntax, why] of refusals) {
    const found = syntax.exec(ahead)?.[0]
    if (found) throw new Refused(`has "${found}", which ${why}`)
  }
  return 1
}

function escaped(character: string | undefined, ahead: string): string {
  if (character === undefined) throw new Refused('ends in a backslash; write "\\\\" for the character')
  if (isClass(character))
    return `[${isNegatedClass(character) ? '^' : ''}${classes[character.toLowerCase()]}]`
  const translated = anchors[character] ?? controls[character]
  if (translated !== undefined) return translated
  if (/[A-Za-z0-9]/.test(character)) throw new Refused(unknownEscape(ahead))
  // Before any other character, the meaning of a backslash differs between implementations of grep.
  return special.test(character) ? `\\${character}` : character === '}' ? '[}]' : character
}

function unknownEscape(ahead: string): string {
  const refusals: [RegExp, string][] = [
    [/^\\[pP](\{[^}]*\}?|.)?/, 'write a class, such as "[[:alpha:]]" or "[[:upper:]]"'],
    [/^\\[xuUcoN](\{[^}]*\}?|[0-9A-Fa-f]*)/, 'write the character itself'],
    [/^\\n/, 'lines are matched separately and without newlines; use "^" and "$"'],
    [
      /^\\([1-9]|[gk](\{\w*\}?|<\w*>?|\d*))/,
      'backreferences are not supported; repeat the referenced part of the pattern',
    ],
    [/^\\[QE]/, 'set fixed to search for plain text, or escape each character'],
  ]
  for (const [syntax, advice] of refusals) {
    const found = syntax.exec(ahead)?.[0]
    if (found) return `has "${found}", which has no POSIX equivalent: ${advice}`
  }
  return `has "${ahead.slice(0, 2)}", which is not supported; write "${ahead[1]}" for the character`
}

interface CharacterSet {
  isNegated: boolean
  ranges: [number, number][]
  /** Contents of bracket expressions, such as `[:alnum:]_`, without the outer brackets. */
  classes: string[]
  /** Same for negated escapes: `\W` adds `[:alnum:]_`, and matches all other characters. */
  negatedClasses: string[]
}

/** Translates a bracket expression. Unlike in POSIX, a backslash inside it is an escape character. */
function readSet(pattern: string, start: number): { posix: string; end: number } {
  const isNegated = pattern[start + 1] === '^'
  const set: CharacterSet = { isNegated, ranges: [], classes: [], negatedClasses: [] }
  const first = start + (isNegated ? 2 : 1)
  let at = first
  while (at === first || pattern[at] !== ']') {
    const member = readMember(pattern, at)
    at = member.end
    if ('add' in member) member.add(set)
    else {
      const last = pattern[at] === '-' && pattern[at + 1] !== ']' ? readMember(pattern, at + 1) : undefined
      const isRange = last !== undefined && 'code' in last
      const to = isRange ? last.code : member.code
      if (to < member.code) throw new Refused('has a range in brackets that ends before it starts')
      set.ranges.push([member.code, to])
      if (isRange) at = last.end
    }
  }
  return { posix: writeSet(set), end: at + 1 }
}

type Member = { end: number } & ({ code: number } | { add: (set: CharacterSet) => void })

function readMember(pattern: string, at: number): Member {
  const isEscape = pattern[at] === '\\'
  const code = pattern.codePointAt(isEscape ? at + 1 : at)
  if (code === undefined)
    throw new Refused(
      'has a "[" without a "]"; write "\\[" for the character, or "\\\\" for a backslash in brackets',
    )
  const character = String.fromCodePoint(code)
  const end = at + character.length + (isEscape ? 1 : 0)
  const named = character === '[' && !isEscape && /^\[([:.=]).*?\1\]/.exec(pattern.slice(at, at + 40))?.[0]
  if (named) return { end: at + named.length, add: (set) => set.classes.push(named) }
  if (!isEscape) return { end, code }
  if (isClass(character)) {
    const words = classes[character.toLowerCase()]!
    return { end, add: (set) => (isNegatedClass(character) ? set.negatedClasses : set.classes).push(words) }
  }
  const control = controlsInBrackets[character]
  if (control === undefined && /[A-Za-z0-9]/.test(character))
    throw new Refused(unknownEscape(pattern.slice(at, at + 40)))
  return { end, code: control?.codePointAt(0) ?? code }
}

function writeSet({ isNegated, ranges, classes, negatedClasses }: CharacterSet): string {
  const inside = writeMembers(ranges, classes)
  const [only, ...others] = new Set(negatedClasses)
  if (only === undefined) {
    if (inside !== '') return isNegated ? `[^${inside}]` : inside === '^' ? '\\^' : `[${inside}]`
    if (isNegated) return '.'
    throw new Refused(unknownEscape('\\n'))
  }
  if (!isNegated) {
    const alternatives = [only, ...others].map((words) => `[^${words}]`)
    if (inside !== '') alternatives.push(inside === '^' ? '\\^' : `[${inside}]`)
    return alternatives.length === 1 ? alternatives[0]! : `(${alternatives.join('|')})`
  }
  if (others.length === 0 && inside === '') return `[${only}]`
  throw new Refused(
    'combines a negated class with other members in "[^…]", which has no POSIX equivalent; list the characters',
  )
}

/**
 * Writes the members of a bracket expression. Places special characters where they are literal: `]` first,
 * and `[`, `^` and `-` last. Omits newlines, which grep would treat as pattern separators.
 */
function writeMembers(ranges: [number, number][], classes: string[]): string {
  const specials = new Set<string>()
  let plain = ''
  for (let [from, to] of ranges) {
    for (; from <= to && isSpecial(from); from++) specials.add(String.fromCodePoint(from))
    for (; from <= to && isSpecial(to); to--) specials.add(String.fromCodePoint(to))
    if (from > to) continue
    const [start, end] = [String.fromCodePoint(from), String.fromCodePoint(to)]
    plain += from === to ? start : `${start}-${end}`
  }
  const front = (specials.has(']') ? ']' : '') + plain + classes.join('')
  const tail = ['[', '^', '-'].filter((each) => specials.has(each)).join('')
  return front === '' && tail === '^-' ? '-^' : front + tail
}

const isSpecial = (code: number) => '[]^-\n'.includes(String.fromCodePoint(code))
