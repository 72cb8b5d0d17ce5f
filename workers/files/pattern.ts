/**
 * Glob patterns: `*`, `?`, `[a-z]`, `[!a-z]`, `{a,b}`, `\` before what is meant as it is, and `**` as a
 * whole part of a path for any number of them. As in a shell, what begins with a dot is matched by a dot alone.
 *
 * Matched by hand, not by a regular expression: a pattern is a stranger's, and time must stay in bounds.
 */
import { Problem } from '../../shared/problem.ts'

export interface Pattern {
  /** Each alternative of the braces, part by part. */
  alternatives: Part[][]
}

export type Part = 'any depth' | Token[]

type Token =
  | { kind: 'character'; character: string }
  | { kind: 'one' }
  | { kind: 'many' }
  | { kind: 'set'; ranges: [string, string][]; negated: boolean }

const alternativesMost = 100

/** @throws {Problem} `invalid_request` for one that leaves its folder, or has too many alternatives */
export function readPattern(text: string, field = 'pattern'): Pattern {
  const alternatives = expandBraces(text)
  if (!alternatives) throw refusal(field, `has more than ${alternativesMost} alternatives`)
  return { alternatives: alternatives.map((one) => readParts(one, field)) }
}

export interface MatchOptions {
  /** Lets `*`, `?`, `[…]` and `**` match what begins with a dot. */
  dots: boolean
}

/** @param path relative, without `.` and `..` */
export function matchesPattern({ alternatives }: Pattern, path: string, options: MatchOptions): boolean {
  const names = path.split('/').map((name) => [...name])
  return alternatives.some((parts) => matchesParts(parts, names, options))
}

/** The parts that all alternatives begin with and that are plain names, without their last. */
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

/** How many parts a path has at most that matches; undefined for any number. */
export function deepest({ alternatives }: Pattern): number | undefined {
  if (alternatives.some((parts) => parts.includes('any depth'))) return undefined
  return Math.max(...alternatives.map((parts) => parts.length))
}

/** A pattern of `find -path` for each alternative: it matches all that the alternative does, and maybe more. */
export const findPatterns = ({ alternatives }: Pattern): string[] =>
  alternatives.map((parts) =>
    parts.reduce<string>((path, part) => path + (part === 'any depth' ? '*' : `/${findPart(part)}`), '.'),
  )

export const findPart = (part: Token[]): string =>
  part
    .map((token) => (token.kind === 'character' ? token.character.replace(/[*?[\]\\]/g, '\\$&') : '*'))
    .join('')

/** @returns undefined when there are too many */
function expandBraces(text: string): string[] | undefined {
  let done: string[] = []
  let open = [text]
  while (open.length > 0) {
    const next = open.flatMap((one) => {
      const alternatives = expandFirst(one)
      if (alternatives) return alternatives
      done.push(one)
      return []
    })
    if (next.length + done.length > alternativesMost) return undefined
    open = next
  }
  done = [...new Set(done)]
  return done
}

/** Spells out the first braces that hold a comma. @returns undefined when there are none */
function expandFirst(text: string): string[] | undefined {
  for (let start = 0; start < text.length; start++) {
    if (text[start] === '\\') start++
    else if (text[start] === '{') {
      const commas: number[] = []
      let depth = 1
      let end = start + 1
      for (; end < text.length; end++) {
        if (text[end] === '\\') end++
        else if (text[end] === '{') depth++
        else if (text[end] === '}' && --depth === 0) break
        else if (text[end] === ',' && depth === 1) commas.push(end)
      }
      if (depth > 0 || commas.length === 0) continue
      const cuts = [start, ...commas, end]
      return cuts
        .slice(1)
        .map((cut, index) => text.slice(0, start) + text.slice(cuts[index]! + 1, cut) + text.slice(end + 1))
    }
  }
  return undefined
}

function readParts(text: string, field: string): Part[] {
  if (text.startsWith('/')) throw refusal(field, 'must be relative; `path` says to what')
  const parts = text.split('/').filter((part) => part !== '' && part !== '.')
  if (parts.length === 0) throw refusal(field, 'names nothing')
  if (parts.includes('..')) throw refusal(field, 'must not leave its folder; `path` says where it begins')
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

/** @returns undefined when the bracket is never closed, and so means itself */
function readSet(characters: string[], start: number): { token: Token; end: number } | undefined {
  const negated = characters[start + 1] === '!' || characters[start + 1] === '^'
  const first = start + (negated ? 2 : 1)
  const ranges: [string, string][] = []
  for (let at = first; at < characters.length; at++) {
    if (characters[at] === ']' && at > first) return { token: { kind: 'set', ranges, negated }, end: at }
    if (characters[at] === '\\' && at + 1 < characters.length) at++
    const from = characters[at]!
    const to = characters[at + 1] === '-' ? characters[at + 2] : undefined
    if (to === undefined || to === ']') ranges.push([from, from])
    else {
      ranges.push([from, to])
      at += 2
    }
  }
  return undefined
}

/** Only the last `**` is ever gone back to: what an earlier one could take, it can too. */
function matchesParts(parts: Part[], names: string[][], options: MatchOptions): boolean {
  const isHidden = (name: string[]) => !options.dots && name[0] === '.'
  let part = 0
  let name = 0
  let back: { part: number; name: number } | undefined
  while (name < names.length) {
    const wanted = parts[part]
    if (wanted === 'any depth') {
      // At the end it stands for something, not for the folder itself.
      if (part === parts.length - 1) return names.slice(name).every((rest) => !isHidden(rest))
      back = { part: ++part, name }
    } else if (wanted && matchesTokens(wanted, names[name]!, options)) {
      part++
      name++
    } else if (back && !isHidden(names[back.name]!)) {
      part = back.part
      name = ++back.name
    } else return false
  }
  return part === parts.length
}

/** The same within one name, where only the last `*` is gone back to. */
function matchesTokens(tokens: Token[], name: string[], { dots }: MatchOptions): boolean {
  if (!dots && name[0] === '.' && !startsWithDot(tokens)) return false
  let token = 0
  let at = 0
  let back: { token: number; at: number } | undefined
  while (at < name.length) {
    const wanted = tokens[token]
    if (wanted?.kind === 'many') back = { token: ++token, at }
    else if (wanted && matchesOne(wanted, name[at]!)) {
      token++
      at++
    } else if (back) {
      token = back.token
      at = ++back.at
    } else return false
  }
  while (tokens[token]?.kind === 'many') token++
  return token === tokens.length
}

function matchesOne(token: Token, character: string): boolean {
  if (token.kind === 'character') return token.character === character
  if (token.kind !== 'set') return true
  const code = character.codePointAt(0)!
  const isIn = token.ranges.some(([from, to]) => from.codePointAt(0)! <= code && code <= to.codePointAt(0)!)
  return isIn !== token.negated
}

const startsWithDot = ([first]: Token[]): boolean => first?.kind === 'character' && first.character === '.'

function plainName(part: Part): string | undefined {
  if (part === 'any depth') return undefined
  const characters = part.map((token) => (token.kind === 'character' ? token.character : undefined))
  return characters.includes(undefined) ? undefined : characters.join('')
}

const refusal = (path: string, message: string) =>
  new Problem('invalid_request', `The pattern ${message}.`, { members: { errors: [{ path, message }] } })
