/**
 * Parses glob patterns: `*`, `?`, `[a-z]`, `[!a-z]`, `{a,b}`, `\` before a literal character, and `**` for
 * any number of path components. As in a shell, only a literal dot matches a dot at the start of a name.
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
  /** `ranges` are inclusive ranges of code points. */
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

/** @throws the result of `refuse` if the alternatives exceed a limit */
function expandBraces(text: string, refuse: (reason: string) => Problem): string[] {
  const done = new Set<string>()
  let open = [text]
  // Each round expands one pair of braces in every alternative that still has one.
  for (let found = 0; open.length > 0; ) {
    const next = open.flatMap((one) => {
      const alternatives = expandFirst(one)
      if (alternatives) return alternatives
      found++
      done.add(one)
      return []
    })
    if (next.length + found > maxAlternatives) throw refuse(`has more than ${maxAlternatives} alternatives`)
    const characters = [...next, ...done].reduce((sum, one) => sum + [...one].length, 0)
    // Text around braces counts once per alternative, because each alternative is matched separately.
    if (characters > limits.globCharacters) {
      throw refuse(`has alternatives with more than ${limits.globCharacters} characters in total`)
    }
    open = next
  }
  return [...done]
}

interface Braces {
  start: number
  commas: number[]
  end?: number
}

/** @returns undefined if no pair of braces contains a comma */
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

/** @returns undefined if the bracket is unclosed and therefore literal */
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

export const startsWithDot = ([first]: Token[]): boolean =>
  first?.kind === 'character' && first.character === '.'

function plainName(part: Part): string | undefined {
  if (part === 'any depth') return undefined
  const characters = part.map((token) => (token.kind === 'character' ? token.character : undefined))
  return characters.includes(undefined) ? undefined : characters.join('')
}

const refusal = (path: string, message: string) =>
  new Problem('invalid_request', `The pattern ${message}.`, { members: { errors: [{ path, message }] } })
