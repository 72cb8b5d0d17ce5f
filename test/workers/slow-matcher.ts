/** A simple reference implementation of glob patterns, without regard to speed. */
import type { Part, Pattern, Token } from '../../workers/files/pattern.ts'

export const matchesSlowly = ({ alternatives }: Pattern, path: string, dots: boolean): boolean =>
  alternatives.some((parts) => matchesParts(parts, path.split('/'), dots))

function matchesParts([part, ...rest]: Part[], names: string[], dots: boolean): boolean {
  if (part === undefined) return names.length === 0
  const [name, ...below] = names
  if (name === undefined) return false
  if (part !== 'any depth') return matchesName(part, name, dots) && matchesParts(rest, below, dots)
  const mayPass = dots || !name.startsWith('.')
  if (rest.length === 0) return mayPass && (below.length === 0 || matchesParts([part], below, dots))
  return matchesParts(rest, names, dots) || (mayPass && matchesParts([part, ...rest], below, dots))
}

function matchesName(tokens: Token[], name: string, dots: boolean): boolean {
  const saysDot = tokens[0]?.kind === 'character' && tokens[0].character === '.'
  return (dots || saysDot || !name.startsWith('.')) && matchesTokens(tokens, [...name])
}

function matchesTokens([token, ...rest]: Token[], characters: string[]): boolean {
  if (token === undefined) return characters.length === 0
  if (token.kind === 'many') {
    return characters.some((_, at) => matchesTokens(rest, characters.slice(at))) || matchesTokens(rest, [])
  }
  const [first, ...others] = characters
  return first !== undefined && matchesOne(token, first) && matchesTokens(rest, others)
}

function matchesOne(token: Token, character: string): boolean {
  if (token.kind === 'character') return token.character === character
  if (token.kind !== 'set') return true
  const code = character.codePointAt(0)!
  return token.ranges.some(([from, to]) => from <= code && code <= to) !== token.negated
}
