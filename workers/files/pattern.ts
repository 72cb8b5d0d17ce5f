/**
 * Parses and matches glob patterns: `*`, `?`, `[a-z]`, `[!a-z]`, `{a,b}`, `\` before a literal character, and
 * `**` for any number of path components. As in a shell, only a literal dot matches a dot at the start of a
 * name.
 */
import { limits } from '../../shared/contract/limits.ts'
import { Problem } from '../../shared/platform/problem.ts'

export interface Pattern {
  alternatives: Part[][]
}

export type Part = 'any depth' | Token[]

export type Token =
  | { kind: 'character'; character: string }
  | { kind: 'one' }
  | { kind: 'many' }
  /** Matches one character. `ranges` are inclusive ranges of code points. */
  | { kind: 'set'; ranges: [number, number][]; negated: boolean }

const maxAlternatives = 100

/**
 * @throws {Problem} `invalid_request` if the pattern would leave its directory or has too many alternatives
 */
export function readPattern(text: string, field = 'pattern'): Pattern {
  const alternatives = expandBraces(text, (reason) => refusal(field, reason))
  return { alternatives: alternatives.map((one) => readParts(one, field)) }
}

export function literalStart({ alternatives }: Pattern): string[] {
  const starts = alternatives.map((parts) => {
    const names = parts.map(plainName)
    const end = names.indexOf(undefined)
    return names.slice(0, end === -1 ? names.length - 1 : Math.min(end, names.length - 1)) as string[]
  })
  const [first = [], ...rest] = starts
  const end = first.findIndex((name, index) => rest.some((start) => start[index] !== name))
  return end === -1 ? first : first.slice(0, end)
}

export const wantsDots = ({ alternatives }: Pattern): boolean =>
  alternatives.some((parts) => parts.some((part) => part !== 'any depth' && startsWithDot(part)))

export function deepest({ alternatives }: Pattern): number | undefined {
  if (alternatives.some((parts) => parts.includes('any depth'))) return undefined
  return Math.max(...alternatives.map((parts) => parts.length))
}

/** Returns `find -path` patterns that match every path of the glob pattern, and possibly more. */
export const findPatterns = ({ alternatives }: Pattern): string[] => [
  ...new Set(
    alternatives.map((parts) =>
      parts.reduce<string>((path, part) => path + (part === 'any depth' ? '*' : `/${findPart(part)}`), '.'),
    ),
  ),
]

export const findPart = (part: Token[]): string =>
  part
    .map((token) => (token.kind === 'character' ? token.character.replace(/[*?[\]\\]/g, '\\$&') : '*'))
    .join('')

function expandBraces(text: string, refuse: (reason: string) => Problem): string[] {
  const done: string[] = []
  const open = [text]
  for (let one = open.shift(); one !== undefined; one = open.shift()) {
    const alternatives = expandFirst(one)
    if (alternatives) open.unshift(...alternatives)
    else done.push(one)
    const all = [...done, ...open]
    if (all.length > maxAlternatives) throw refuse(`has more than ${maxAlternatives} alternatives`)
    // Text around braces counts once per alternative, because each alternative is matched separately.
    if ([...all.join('')].length > limits.globCharacters) {
      throw refuse(`has alternatives with more than ${limits.globCharacters} characters in total`)
    }
  }
  return [...new Set(done)]
}

interface Braces {
  start: number
  commas: number[]
  end?: number
}

/** Expands the first pair of braces that contains a comma. Returns undefined if there is none. */
function expandFirst(text: string): string[] | undefined {
  const braces = readBraces(text).find(({ commas, end }) => end !== undefined && commas.length > 0)
  if (!braces) return undefined
  const { start, commas, end = 0 } = braces
  const cuts = [start, ...commas, end]
  return cuts
    .slice(1)
    .map((cut, index) => text.slice(0, start) + text.slice(cuts[index]! + 1, cut) + text.slice(end + 1))
}

/** Returns the braces in the order in which they open. Unclosed braces have no `end`. */
function readBraces(text: string): Braces[] {
  const all: Braces[] = []
  const open: Braces[] = []
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === '{') {
      const braces = { start: at, commas: [] }
      all.push(braces)
      open.push(braces)
    } else if (text[at] === ',') open.at(-1)?.commas.push(at)
    else if (text[at] === '}') {
      const braces = open.pop()
      if (braces) braces.end = at
    }
  }
  return all
}

function readParts(text: string, field: string): Part[] {
  if (text.startsWith('/')) throw refusal(field, 'must be relative to `path`')
  const parts = text.split('/').filter((part) => part !== '' && part !== '.')
  if (parts.length === 0) throw refusal(field, 'is empty')
  if (parts.includes('..'))
    throw refusal(field, 'must not contain `..`; set `path` to search another directory')
  return parts
    .map((part): Part => (part === '**' ? 'any depth' : readTokens([...part])))
    .filter((part, index, all) => part !== 'any depth' || all[index - 1] !== 'any depth')
}

function readTokens(characters: string[]): Token[] {
  const tokens: Token[] = []
  for (let at = 0; at < characters.length; at++) {
    const character = characters[at]!
    if (character === '*') {
      if (tokens.at(-1)?.kind !== 'many') tokens.push({ kind: 'many' })
    } else if (character === '?') tokens.push({ kind: 'one' })
    else if (character === '[') {
      const set = readSet(characters, at)
      tokens.push(set?.token ?? { kind: 'character', character })
      if (set) at = set.end
    } else if (character === '\\' && at + 1 < characters.length) {
      tokens.push({ kind: 'character', character: characters[++at]! })
    } else tokens.push({ kind: 'character', character })
  }
  return tokens
}

/** Parses a `[…]` set. Returns undefined if the bracket is unclosed and therefore literal. */
function readSet(characters: string[], start: number): { token: Token; end: number } | undefined {
  const negated = characters[start + 1] === '!' || characters[start + 1] === '^'
  const first = start + (negated ? 2 : 1)
  const ranges: [number, number][] = []
  for (let at = first; at < characters.length; at++) {
    // As the first character, `]` is literal.
    if (characters[at] === ']' && at > first) return { token: { kind: 'set', ranges, negated }, end: at }
    if (characters[at] === '\\' && at + 1 < characters.length) at++
    const from = characters[at]!
    const to = characters[at + 1] === '-' ? characters[at + 2] : undefined
    const isRange = to !== undefined && to !== ']'
    ranges.push([codeOf(from), codeOf(isRange ? to : from)])
    if (isRange) at += 2
  }
  return undefined
}

const codeOf = (character: string) => character.codePointAt(0)!

const startsWithDot = ([first]: Token[]): boolean => first?.kind === 'character' && first.character === '.'

function plainName(part: Part): string | undefined {
  if (part === 'any depth') return undefined
  const characters = part.map((token) => (token.kind === 'character' ? token.character : undefined))
  return characters.includes(undefined) ? undefined : characters.join('')
}

const refusal = (path: string, message: string) =>
  new Problem('invalid_request', `The pattern ${message}.`, { members: { errors: [{ path, message }] } })

/**
 * Returns a function that checks whether a path matches. The path must be relative, without `.` or `..`.
 * @param options.dots whether `*`, `?`, `[…]` and `**` match names that begin with a dot
 */
export function makeMatcher(pattern: Pattern, options: { dots: boolean }): (path: string) => boolean {
  const expressions = pattern.alternatives.map((parts) => expressionOf(parts, options))
  return (path) => path !== '' && expressions.some((expression) => expression.test(path))
}

/**
 * Converts one expansion of a pattern's braces to a regular expression without exponential backtracking.
 * The text between two `*` or two `**` is matched as early as possible and never rematched.
 */
function expressionOf(parts: Part[], { dots }: { dots: boolean }): RegExp {
  let groups = 0
  /** Emulates an atomic group with a lookahead, because a match never backtracks into a lookahead. */
  const atomic = (make: () => string): string => {
    const group = ++groups
    return `(?=(${make()}))\\${group}`
  }
  const notHidden = dots ? '' : '(?!\\.)'
  const nameOf = (tokens: Token[]): string => {
    const [first = [], ...others] = splitAt(tokens, ({ kind }) => kind === 'many')
    const last = others.pop()
    return [
      startsWithDot(tokens) ? '' : notHidden,
      first.map(oneOf).join(''),
      ...others.map((some) => atomic(() => `[^/]*?${some.map(oneOf).join('')}`)),
      last ? `[^/]*${last.map(oneOf).join('')}` : '',
    ].join('')
  }
  const namesOf = (some: Part[]) => (some as Token[][]).map(nameOf).join('/')
  // A final `**` matches at least one name.
  const whole = parts.at(-1) === 'any depth' ? [...parts, [{ kind: 'many' } as const]] : parts
  const [first = [], ...others] = splitAt(whole, (part) => part === 'any depth')
  const last = others.pop()
  const anyDepth = `(?:${notHidden}[^/]+/)*`
  const source = [
    namesOf(first) + (last && first.length > 0 ? '/' : ''),
    ...others.map((some) => atomic(() => `${anyDepth}?${namesOf(some)}/`)),
    last ? anyDepth + namesOf(last) : '',
  ].join('')
  return new RegExp(`^${source}$`, 'u')
}

function splitAt<T>(items: T[], isSeparator: (item: T) => boolean): T[][] {
  const runs: T[][] = [[]]
  for (const item of items) {
    if (isSeparator(item)) runs.push([])
    else runs.at(-1)!.push(item)
  }
  return runs
}

function oneOf(token: Token): string {
  if (token.kind === 'character') return escapeOf(codeOf(token.character))
  if (token.kind !== 'set') return '[^/]'
  const ranges = token.ranges.filter(([from, to]) => from <= to)
  const set = ranges.map(([from, to]) => `${escapeOf(from)}-${escapeOf(to)}`).join('')
  return token.negated ? `[^/${set}]` : `(?!/)[${set}]`
}

const escapeOf = (code: number): string => `\\u{${code.toString(16)}}`
