import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Steps } from '../../workers/files/cooperative.ts'
import { type Replacement, replaceExact } from '../../workers/files/replace.ts'
import { processorMs } from '../support/measure.ts'

function finish<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}

const replace = (content: string, old: string, other: string, replaceAll = false) => {
  const result = finish(replaceExact(Buffer.from(content), { old, new: other, replaceAll }))
  return { ...result, content: result.content.toString() }
}

test('an edit replaces all occurrences in any text exactly as String.replaceAll does', () => {
  const few = fc.string({ unit: fc.constantFrom('a', 'b', 'ä') })
  fc.assert(
    fc.property(
      few,
      fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 1 }),
      few,
      (text, old, other) => {
        fc.pre(text.includes(old))
        const { content, replacements } = replace(text, old, other, true)
        expect(content).toBe(text.replaceAll(old, () => other))
        expect(replacements).toBe(text.split(old).length - 1)
      },
    ),
  )
})

test('the error for an edit with several matches lists the line of each match, including overlapping matches', () => {
  expect(() => replace('x\nab\n\nab ab', 'ab', '')).toThrow(
    expect.objectContaining({ code: 'edit_not_unique', members: { matches: 3, lines: [2, 4, 4] } }),
  )
  expect(() => replace('aaa', 'aa', '')).toThrow(
    expect.objectContaining({ code: 'edit_not_unique', members: { matches: 2, lines: [1, 1] } }),
  )
})

test('LF in the search text of an edit matches any line ending', () => {
  expect(replace('a\r\nb\r\n', 'a\nb', 'c\nd').content).toBe('c\r\nd\r\n')
  expect(replace('a\r\nb\r\n', 'b', 'c\r\nd').content).toBe('a\r\nc\r\nd\r\n')
  expect(replace('a\r\nb\n', 'b\n', 'c\nd').content).toBe('a\r\nc\nd')
  expect(replace('a\r\nb\nc', 'a\nb\nc', 'A\nB\nC').content).toBe('A\r\nB\nC')
  expect(replace('a\r\nb\nc\r\n', 'b\nc', 'B\nC').content).toBe('a\r\nB\nC\r\n')
  expect(replace('a\nb\r\nc', 'b', 'x\ny').content).toBe('a\nx\r\ny\r\nc')
  expect(replace('a\r\nb\nlast', 'last', 'x\ny').content).toBe('a\r\nb\nx\ny')
  expect(replace('a\r\nb\na\nb', 'a\nb', 'x\ny\nz', true).content).toBe('x\r\ny\r\nz\nx\ny\nz')
  expect(replace('a\r\n\r\nb', '\n', '', true).content).toBe('ab')
  expect(replace('a\r\nb\n', 'a\r\nb', 'c\r\nd').content).toBe('c\r\nd\n')
})

test('the result of an edit does not depend on the line endings of the file', () => {
  const text = fc.array(fc.constantFrom('a', 'b', '\n', '\r\n'), { maxLength: 30 }).map((all) => all.join(''))
  const plain = (words: string) => words.replaceAll('\r\n', '\n')
  const old = fc
    .array(fc.constantFrom('a', 'b', '\n'), { minLength: 1, maxLength: 4 })
    .map((all) => all.join(''))
  fc.assert(
    fc.property(text, old, old, (before, from, to) => {
      fc.pre(plain(before).includes(from))
      const { content } = replace(before, from, to, true)
      expect(plain(content)).toBe(plain(before).replaceAll(from, () => to))
      if (!before.includes('\r')) expect(content).not.toContain('\r')
      if (!/(^|[^\r])\n/.test(before) && before.includes('\r')) expect(content).not.toMatch(/(^|[^\r])\n/)
    }),
  )
})

test('the error for an edit without a match reports text that differs only in its line endings', () => {
  expect(() => replace('a\nb\n', 'a\r\nb', '')).toThrow(/with other line endings/)
  expect(() => replace('a\nb\n', 'a\r\nc', '')).toThrow(/except for leading|does not occur in the file\.$/)
})

test('an edit of any text takes limited time and memory', () => {
  const content = Buffer.alloc(4_000_000, 'a')
  const old = `b${'a'.repeat(1_000_000)}`
  const attempt = (replacement: Replacement) => () => finish(replaceExact(content, replacement))
  const trying = () => {
    expect(attempt({ old, new: '', replaceAll: false })).toThrow(/does not occur/)
    expect(attempt({ old: 'a'.repeat(1_000_000), new: '', replaceAll: false })).toThrow(/times/)
    expect(attempt({ old: 'a', new: old, replaceAll: true })).toThrow(/would exceed the limit/)
  }
  expect(processorMs(trying)).toBeLessThan(3_000)
})
