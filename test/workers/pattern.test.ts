import { expect, test } from 'vitest'
import {
  deepest,
  findPatterns,
  literalStart,
  matchesPattern,
  readPattern,
} from '../../workers/files/pattern.ts'

const matches = (pattern: string, path: string, dots = false) =>
  matchesPattern(readPattern(pattern), path, { dots })

test.each([
  ['*.ts', ['a.ts', 'ä b.ts', '\n.ts'], ['a.tsx', 'b/a.ts', '.ts', '.a.ts']],
  ['?', ['a', 'ä', '😀', '*'], ['', 'ab', '.']],
  ['a[!0-9]b', ['axb'], ['a5b', 'ab', 'a/b']],
  ['[]a-]', [']', 'a', '-'], ['b']],
  ['[a', ['[a'], ['a']],
  ['\\*{a\\,b}', ['*{a,b}'], ['xa', 'a']],
  ['{a,b{c,d}}/{,x}y', ['a/y', 'a/xy', 'bc/y', 'bd/xy'], ['b/y', 'c/y']],
  ['**', ['a', 'a/b/c'], ['.a', 'a/.b/c']],
  ['**/a', ['a', 'b/a', 'b/c/a'], ['ba', 'a/b', '.b/a']],
  ['a/**', ['a/b', 'a/b/c'], ['a', 'b/a']],
  ['a/**/b/**/c', ['a/b/c', 'a/x/b/y/z/c', 'a/b/b/c/c'], ['a/c', 'a/b/x', 'a/b/c/d']],
  ['a**c', ['ac', 'abc'], ['a/c']],
  ['.*/x', ['.git/x'], ['git/x']],
  ['./a//b', ['a/b'], ['b']],
] as const)('%j matches what it should and nothing else', (pattern, yes, no) => {
  for (const path of yes) expect(matches(pattern, path), path).toBe(true)
  for (const path of no) expect(matches(pattern, path), path).toBe(false)
})

test('where dots count for nothing, hidden names match too', () => {
  expect(matches('*', '.env', true)).toBe(true)
  expect(matches('**/*.ts', '.git/a.ts', true)).toBe(true)
})

test.each(['/etc/*', '../x', 'a/../b', '.', '{a,b}'.repeat(8)])('%j is refused', (pattern) => {
  expect(() => readPattern(pattern)).toThrow(expect.objectContaining({ code: 'invalid_request' }))
})

test('a pattern that would take a regular expression for ever is quick', () => {
  const started = performance.now()
  expect(matches('*a'.repeat(60), `${'a'.repeat(250)}b`)).toBe(false)
  expect(matches(`${'**/a/'.repeat(60)}b`, 'a/'.repeat(250).slice(0, -1))).toBe(false)
  expect(performance.now() - started).toBeLessThan(500)
})

test('find starts as deep and goes as deep as the pattern allows', () => {
  const pattern = readPattern('src/{lib,bin}/x?/[ab].ts')
  expect(literalStart(pattern)).toEqual(['src'])
  expect(deepest(pattern)).toBe(4)
  expect(findPatterns(pattern)).toEqual(['./src/lib/x*/*.ts', './src/bin/x*/*.ts'])
  expect(findPatterns(readPattern('a/**/\\*'))).toEqual(['./a*/\\*'])
  expect(deepest(readPattern('a/**'))).toBeUndefined()
})
