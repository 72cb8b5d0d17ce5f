import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  deepest,
  findPatterns,
  literalStart,
  makeMatcher,
  type Part,
  type Pattern,
  readPattern,
  type Token,
} from '../../workers/files/pattern.ts'
import { processorMs } from '../support/measure.ts'

const matches = (pattern: string, path: string, dots = false) =>
  makeMatcher(readPattern(pattern), { dots })(path)

test.each([
  ['*.ts', ['a.ts', 'ä b.ts', '\n.ts'], ['a.tsx', 'b/a.ts', '.ts', '.a.ts']],
  ['?', ['a', 'ä', '😀', '*'], ['', 'ab', '.']],
  ['a[!0-9]b', ['axb'], ['a5b', 'ab', 'a/b']],
  ['[]a-]', [']', 'a', '-'], ['b']],
  ['[a', ['[a'], ['a']],
  ['\\*{a\\,b}', ['*{a,b}'], ['xa', 'a']],
  ['{a,b{c,d}}/{,x}y', ['a/y', 'a/xy', 'bc/y', 'bd/xy'], ['b/y', 'c/y']],
  ['**', ['a', 'a/b/c'], ['.a', 'a/.b/c', '']],
  ['**/a', ['a', 'b/a', 'b/c/a'], ['ba', 'a/b', '.b/a']],
  ['a/**', ['a/b', 'a/b/c'], ['a', 'b/a']],
  ['a/**/b/**/c', ['a/b/c', 'a/x/b/y/z/c', 'a/b/b/c/c'], ['a/c', 'a/b/x', 'a/b/c/d']],
  ['a**c', ['ac', 'abc'], ['a/c']],
  ['.*/x', ['.git/x'], ['git/x']],
  ['./a//b', ['a/b'], ['b']],
] as const)('the glob %j matches only the expected paths', (pattern, yes, no) => {
  for (const path of yes) expect(matches(pattern, path), path).toBe(true)
  for (const path of no) expect(matches(pattern, path), path).toBe(false)
})

test('with the `dots` option, a glob also matches hidden names', () => {
  expect(matches('*', '.env', true)).toBe(true)
  expect(matches('**/*.ts', '.git/a.ts', true)).toBe(true)
})

test.each(['/etc/*', '../x', 'a/../b', '.', '{a,b}'.repeat(8)])('the glob %j is rejected', (pattern) => {
  expect(() => readPattern(pattern)).toThrow(expect.objectContaining({ code: 'invalid_request' }))
})

test('a glob that could cause excessive backtracking is matched quickly', () => {
  const matching = () => {
    expect(matches('*a'.repeat(500), `${'a'.repeat(250)}b`)).toBe(false)
    expect(matches(`${'**/a/'.repeat(200)}b`, 'a/'.repeat(2_000).slice(0, -1))).toBe(false)
    expect(matches(`**/${'*/'.repeat(500)}b`, 'a/'.repeat(2_000).slice(0, -1))).toBe(false)
  }
  expect(processorMs(matching)).toBeLessThan(1_000)
})

test('the `find` command for a glob searches no deeper than the glob can match', () => {
  const pattern = readPattern('src/{lib,bin}/x?/[ab].ts')
  expect(literalStart(pattern)).toEqual(['src'])
  expect(deepest(pattern)).toBe(4)
  expect(findPatterns(pattern)).toEqual(['./src/lib/x*/*.ts', './src/bin/x*/*.ts'])
  expect(findPatterns(readPattern('a/**/\\*'))).toEqual(['./a*/\\*'])
  expect(deepest(readPattern('a/**'))).toBeUndefined()
})

test('any glob matches the same paths as an exhaustive reference matcher', () => {
  const words = [...'ab.é😀*?/[]!-{},\\', '/**/', '**/', '{a,b*}']
  const pattern = fc.string({ unit: fc.constantFrom(...words), minLength: 1, maxLength: 12 })
  // Many alternatives, so that their states exceed one machine word.
  const patterns = fc.oneof(
    pattern,
    fc.array(pattern, { minLength: 5, maxLength: 12 }).map((all) => `{${all}}`),
  )
  const name = fc.string({
    unit: fc.constantFrom('a', 'b', '.', 'é', '😀', '[', '-', '}'),
    minLength: 1,
    maxLength: 4,
  })
  const paths = fc.array(fc.array(name, { minLength: 1, maxLength: 4 }).map((names) => names.join('/')))
  fc.assert(
    fc.property(patterns, paths, fc.boolean(), (text, all, dots) => {
      const read = readOrNot(text)
      fc.pre(read !== undefined)
      const match = makeMatcher(read, { dots })
      for (const path of all) expect(match(path), path).toBe(matchesSlowly(read, path, dots))
    }),
    { numRuns: 2_000 },
  )
})

function readOrNot(text: string) {
  try {
    return readPattern(text)
  } catch {
    return undefined
  }
}

test('globs with many alternatives are parsed and matched quickly', () => {
  const braces = '{'.repeat(1024)
  const brackets = `${'{a,b}'.repeat(3)}${'['.repeat(120)}\\]`
  const reading = () => [braces, brackets].map((text) => matches(text, 'a'))
  expect(processorMs(reading)).toBeLessThan(500)
  expect(() => readPattern(`${'a'.repeat(100)}{${'b,'.repeat(90)}c}`)).toThrow(/more than 1024 characters/)

  const alternatives = Array.from({ length: 60 }, (_, index) => `*a*a*a*a*a*a*${index}b`)
  const match = makeMatcher(readPattern(`{${alternatives}}`), { dots: false })
  const matching = () => {
    for (let index = 0; index < 10_000; index++) match(`${'a'.repeat(240)}${index}`)
  }
  // Matching yields to other work, so more speed is unnecessary.
  expect(processorMs(matching)).toBeLessThan(2_000)
})

/** A simple reference implementation of glob patterns, without regard to speed. */
const matchesSlowly = ({ alternatives }: Pattern, path: string, dots: boolean): boolean =>
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
